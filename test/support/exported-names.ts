import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import ts from 'typescript';

/** What a module hands out, by reading its source and that of the modules it hands on. */
export interface ExportedNames {
  /** Names that exist at run time. */
  readonly values: ReadonlySet<string>;
  /** Names that exist only for the compiler. */
  readonly types: ReadonlySet<string>;
}

/** @param file - path of a TypeScript module; `export *` is followed, other imports are not */
export function exportedNames(file: string): ExportedNames {
  const values = new Set<string>();
  const types = new Set<string>();
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.ES2023, true);
  for (const statement of source.statements) {
    if (ts.isExportDeclaration(statement)) readExport(statement, file, values, types);
    else if (isExported(statement)) readDeclaration(statement, values, types);
  }
  // A constant and a type of one name, such as `ConflictPolicy`, is a value.
  for (const name of values) types.delete(name);
  return { values, types };
}

function readExport(statement: ts.ExportDeclaration, file: string, values: Set<string>, types: Set<string>): void {
  const { exportClause, isTypeOnly, moduleSpecifier } = statement;
  if (exportClause && ts.isNamedExports(exportClause)) {
    for (const element of exportClause.elements) {
      (isTypeOnly || element.isTypeOnly ? types : values).add(element.name.text);
    }
    return;
  }
  if (exportClause || !moduleSpecifier || !ts.isStringLiteral(moduleSpecifier)) {
    throw new Error(`${file}: this form of export is not read`);
  }
  const all = exportedNames(resolve(dirname(file), moduleSpecifier.text.replace(/\.js$/, '.ts')));
  for (const name of all.values) (isTypeOnly ? types : values).add(name);
  for (const name of all.types) types.add(name);
}

function isExported(statement: ts.Statement): boolean {
  return ts.canHaveModifiers(statement)
    ? (ts.getModifiers(statement) ?? []).some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
    : false;
}

function readDeclaration(statement: ts.Statement, values: Set<string>, types: Set<string>): void {
  if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) types.add(statement.name.text);
  else if (ts.isClassDeclaration(statement) || ts.isFunctionDeclaration(statement)) {
    if (statement.name) values.add(statement.name.text);
  } else if (ts.isVariableStatement(statement)) {
    for (const { name } of statement.declarationList.declarations) if (ts.isIdentifier(name)) values.add(name.text);
  }
}
