import type { Answer } from '../answer.js';
import type { Agent, Principal, User } from '../world/world.js';

/** One call, read and authenticated. */
export interface Call<Caller = Principal | null> {
  readonly caller: Caller;
  /** Path parameters by name; those named `…id` are UUIDs in lower case. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Parsed JSON; undefined without a body. */
  readonly body: unknown;
}

/** Whose key opens a route. */
export type Surface = 'agent' | 'me' | 'dev' | 'open';

export type Handler = (call: Call) => Answer;

export interface Route {
  readonly method: string;
  /** E.g. `/api/v1/agent/chats/:chat_id/messages`. */
  readonly path: string;
  readonly surface: Surface;
  readonly handle: Handler;
}

export function agentRoute(method: string, path: string, handle: (call: Call<Agent>) => Answer): Route {
  return { method, path: `/api/v1/agent${path}`, surface: 'agent', handle: handle as Handler };
}

export function userRoute(method: string, path: string, handle: (call: Call<User>) => Answer): Route {
  return { method, path: `/api/v1/me${path}`, surface: 'me', handle: handle as Handler };
}

interface Node {
  readonly literal: Map<string, Node>;
  parameter: Node | null;
  readonly routes: Map<string, Place>;
}

/** A route with the names of its parameters, in the order of the path. */
interface Place {
  readonly route: Route;
  readonly names: readonly string[];
  /** Those that name a UUID. */
  readonly idNames: readonly string[];
}

/** A route for a call. */
export interface Found {
  readonly route: Route;
  readonly params: Record<string, string>;
  /** Which parameters have to be UUIDs. */
  readonly idNames: readonly string[];
}

const newNode = (): Node => ({ literal: new Map(), parameter: null, routes: new Map() });

/** Finds the route of a method and path; literal segments win over parameters. */
export class Router {
  readonly #root = newNode();

  constructor(routes: Iterable<Route>) {
    for (const route of routes) this.#add(route);
  }

  find(method: string, path: string): Found | null {
    const segments = path.split('/');
    if (segments.at(-1) === '') segments.pop();
    const values: string[] = [];
    const found = walk(this.#root, segments, 1, method, values);
    if (!found) return null;
    const params: Record<string, string> = {};
    found.names.forEach((name, index) => {
      params[name] = decode(values[index] ?? '');
    });
    return { route: found.route, params, idNames: found.idNames };
  }

  #add(route: Route): void {
    let node = this.#root;
    const names: string[] = [];
    for (const segment of route.path.split('/').slice(1)) {
      if (segment.startsWith(':')) {
        names.push(segment.slice(1));
        node = node.parameter ??= newNode();
        continue;
      }
      let next = node.literal.get(segment);
      if (!next) node.literal.set(segment, (next = newNode()));
      node = next;
    }
    const idNames = names.filter((name) => name === 'id' || name.endsWith('_id'));
    node.routes.set(route.method, { route, names, idNames });
  }
}

function walk(node: Node, segments: readonly string[], at: number, method: string, values: string[]): Place | null {
  const segment = segments[at];
  if (segment === undefined) return node.routes.get(method) ?? null;
  const literal = node.literal.get(segment);
  const found = literal ? walk(literal, segments, at + 1, method, values) : null;
  if (found || !node.parameter) return found;
  values.push(segment);
  const deeper = walk(node.parameter, segments, at + 1, method, values);
  if (!deeper) values.pop();
  return deeper;
}

function decode(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    // Not an encoded text; what it is decides the route's own check.
    return segment;
  }
}
