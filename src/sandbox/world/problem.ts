/** The platform's refusal of a call, as it goes over the wire. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  /** JSON pointer → what is wrong there; present on 422. */
  readonly details: Readonly<Record<string, readonly string[]>> | null;

  constructor(
    status: number,
    code: string,
    message: string,
    details: Readonly<Record<string, readonly string[]>> | null = null,
  ) {
    super(message);
    this.name = 'Problem';
    this.status = status;
    this.code = code;
    this.details = details ?? (status === 422 ? {} : null);
  }
}

export const badRequest = (message: string) => new Problem(400, 'bad_request', message);
export const unauthorized = () => new Problem(401, 'unauthorized', 'Invalid or missing credentials');
export const forbidden = (message: string) => new Problem(403, 'forbidden', message);
export const limitReached = (what: string) => new Problem(403, 'limit_reached', `Limit of ${what} reached`);
export const notFound = (what: string) => new Problem(404, 'not_found', `${what} not found`);
export const conflict = (message: string) => new Problem(409, 'conflict', message);

/** One invalid field. */
export const invalid = (pointer: string, ...reasons: string[]) =>
  new Problem(422, 'validation_error', 'Validation failed', { [pointer]: reasons });

/** A 422 with a code of its own. The code is its sentence too: clients compare the message with it. */
export const refused = (code: string, pointer: string) => new Problem(422, code, code, { [pointer]: [code] });
