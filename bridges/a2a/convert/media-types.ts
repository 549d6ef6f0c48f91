const BY_EXTENSION: Readonly<Record<string, string>> = {
  txt: 'text/plain',
  log: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  xml: 'application/xml',
  json: 'application/json',
  yaml: 'application/yaml',
  yml: 'application/yaml',
  pdf: 'application/pdf',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
};

/** Media type without its parameters, in lower case. */
export function bareType(mediaType: string): string {
  return (mediaType.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** The type a file name suggests; bytes of no known kind are `application/octet-stream`. */
export function typeOfFile(name: string | undefined): string {
  const extension = name?.includes('.') ? name.slice(name.lastIndexOf('.') + 1).toLowerCase() : '';
  return BY_EXTENSION[extension] ?? 'application/octet-stream';
}

/** Whether `mediaType` falls under one of `offered`: exact, `text/*` or `*` + `/*`; parameters do not count. */
export function acceptsType(offered: readonly string[], mediaType: string): boolean {
  const bare = bareType(mediaType);
  return offered.some((one) => {
    const range = bareType(one);
    if (range === '*/*' || range === bare) return true;
    return range.endsWith('/*') && bare.startsWith(range.slice(0, -1));
  });
}

/** Whether what a client accepts and what is offered have a type in common. */
export function overlaps(accepted: readonly string[], offered: readonly string[]): boolean {
  return accepted.some((one) => acceptsType(offered, one) || offered.some((other) => acceptsType([one], other)));
}
