import type { IncomingMessage, ServerResponse } from 'node:http';

/** Serves the console page. */
export function createConsole(): (request: IncomingMessage, response: ServerResponse) => boolean {
  return (request, response) => {
    if (request.url !== '/') return false;
    response.end('console');
    return true;
  };
}
