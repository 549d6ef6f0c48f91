import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Core } from './core.js';
import type { FaultEffect, Faults } from './faults.js';
import { METHODS, type MethodRule } from './method-table.js';
import { CHAT_METHODS } from './methods-chat.js';
import { READ_METHODS } from './methods-read.js';
import { OTHER_METHODS } from './methods-other.js';
import { Rates } from './rates.js';
import { SlackFailure, type App, type Installation, type Json, type Token } from './world.js';

const HANDLERS = { ...CHAT_METHODS, ...READ_METHODS, ...OTHER_METHODS };

/** A Web API call as it arrived, and what became of it. */
export interface LoggedCall {
  readonly method: string;
  readonly args: Json;
  readonly team: string;
  readonly app: string;
  readonly token: string;
  readonly at: number;
  /** `ok`, Slack's error word, `429`, or a fault's kind. */
  outcome: string;
  /** Milliseconds on the double's clock when the answer left; null while it has not. */
  answeredAt: number | null;
}

export interface WebApiOptions {
  readonly core: Core;
  readonly faults: Faults;
  /** Whether rates are counted and refused. */
  readonly enforceRates: () => boolean;
  readonly openSocketUrl: (app: App) => string;
  /** Something happened that a waiting test may want to look at. */
  readonly touched: () => void;
}

interface Caller {
  kind: 'bot' | 'app' | 'none';
  installation: Installation | null;
  app: App | null;
  teamId: string;
}

/** `/api/{method}`: token, scope, rate, method, in Slack's order; every answer as Slack words it. */
export class WebApi {
  readonly calls: LoggedCall[] = [];
  readonly #options: WebApiOptions;
  readonly #rates: Rates;
  inFlight = 0;

  constructor(options: WebApiOptions) {
    this.#options = options;
    this.#rates = new Rates(options.core.world.clock);
  }

  async handle(method: string, request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
    const { core, faults, touched } = this.#options;
    const { clock } = core.world;
    const args = parseArguments(request.headers['content-type'] ?? '', body);
    const tokenValue = readToken(request, args);
    const caller = this.#guess(tokenValue, args);
    const call: LoggedCall = {
      method,
      args,
      team: caller.teamId,
      app: caller.app?.id ?? '',
      token: tokenValue,
      at: clock.now(),
      outcome: 'pending',
      answeredAt: null,
    };
    this.calls.push(call);
    this.inFlight += 1;
    try {
      const fault = faults.take({ method, team: call.team, channel: channelArgument(args), args }, clock.now());
      if (fault) {
        call.outcome = fault.kind === 'error' ? fault.error : fault.kind;
        await this.#answerWithFault(fault, call, caller, response);
      } else {
        this.#send(response, this.#run(call, caller), call, caller);
      }
    } finally {
      this.inFlight -= 1;
      call.answeredAt = clock.now();
      touched();
    }
  }

  async #answerWithFault(
    fault: FaultEffect,
    call: LoggedCall,
    caller: Caller,
    response: ServerResponse,
  ): Promise<void> {
    switch (fault.kind) {
      case 'error':
        this.#write(response, 200, {}, JSON.stringify({ ok: false, error: fault.error, ...fault.extra }));
        return;
      case 'status':
        this.#write(
          response,
          fault.status,
          fault.headers ?? {},
          fault.body ?? `<html><body>${fault.status}</body></html>`,
          'text/html',
        );
        return;
      case 'drop':
        if (fault.applied) this.#run(call, caller);
        response.destroy();
        return;
      case 'late':
        void fault.until.then(() => {
          this.#run(call, caller);
          this.#options.touched();
        });
        if (fault.connection === 'broken') response.destroy();
        return;
      case 'delay':
      case 'hold': {
        const early =
          fault.apply === 'before' || (fault.kind === 'delay' && fault.apply === undefined)
            ? this.#run(call, caller)
            : null;
        this.#options.touched();
        if (fault.kind === 'delay') await this.#options.core.world.clock.sleep(fault.ms);
        else await fault.until;
        this.#send(response, early ?? this.#run(call, caller), call, caller);
        return;
      }
      case 'truncate': {
        const text = JSON.stringify(this.#run(call, caller));
        this.#write(response, 200, {}, text.slice(0, Math.max(1, text.length >> 1)));
        return;
      }
      case 'warn': {
        const result = this.#run(call, caller);
        const { warnings, old = false } = fault;
        const metadata = { ...(result['response_metadata'] as Json | undefined), warnings };
        const warned = old ? { warning: warnings.join(',') } : { response_metadata: metadata };
        this.#send(response, { ...result, ...warned }, call, caller);
        return;
      }
      case 'garbage':
        this.#run(call, caller);
        this.#write(response, 200, {}, '<html>not json</html>', 'text/html');
        return;
    }
  }

  /** Runs the method; a refusal is an answer too. */
  #run(call: LoggedCall, caller: Caller): Json {
    try {
      const rule = METHODS[call.method];
      if (!rule) {
        this.#options.core.unknownMethods.push(call.method);
        throw new SlackFailure('unknown_method', { req_method: call.method });
      }
      this.#authorize(rule, call, caller);
      this.#checkRate(rule, call, caller);
      if (call.method === 'api.test') return { ok: true };
      if (call.method === 'apps.connections.open') return { ok: true, url: this.#options.openSocketUrl(caller.app!) };
      if (call.method === 'apps.event.authorizations.list') return { ok: true, authorizations: [] };
      const handler = HANDLERS[call.method];
      if (!handler) throw new SlackFailure('unknown_method', { req_method: call.method });
      const { core } = this.#options;
      const result = handler({
        core,
        world: core.world,
        method: call.method,
        args: call.args,
        installation: caller.installation!,
        teamId: caller.teamId,
      });
      return { ok: true, ...result };
    } catch (error) {
      if (error instanceof SlackFailure) return { ok: false, error: error.error, ...error.extra };
      if (error instanceof RateRefusal) return { ok: false, error: 'ratelimited', retryAfter: error.seconds };
      throw error;
    }
  }

  #authorize(rule: MethodRule, call: LoggedCall, caller: Caller): void {
    if (rule.token === 'none') return;
    if (call.token === '') throw new SlackFailure('not_authed');
    if (rule.token === 'app') {
      if (!caller.app || caller.kind !== 'app')
        throw new SlackFailure(caller.kind === 'bot' ? 'not_allowed_token_type' : 'invalid_auth');
      return;
    }
    if (caller.kind === 'app') throw new SlackFailure('not_allowed_token_type');
    const { installation } = caller;
    if (!installation) throw new SlackFailure('invalid_auth');
    const token = installation.tokens.find((one) => one.value === call.token);
    if (!token || token.revoked) throw new SlackFailure('token_revoked');
    if (token.expiresAt !== null && token.expiresAt <= this.#options.core.world.clock.now())
      throw new SlackFailure('token_expired');
    if (!installation.active) throw new SlackFailure('account_inactive');
    if (caller.teamId === '') throw new SlackFailure('team_not_found');
    if (rule.scopes.length > 0 && !rule.scopes.some((scope) => installation.scopes.has(scope))) {
      throw new SlackFailure('missing_scope', { needed: rule.scopes[0], provided: [...installation.scopes].join(',') });
    }
  }

  #checkRate(rule: MethodRule, call: LoggedCall, caller: Caller): void {
    if (!this.#options.enforceRates() || !caller.app) return;
    const historyMethod = call.method === 'conversations.history' || call.method === 'conversations.replies';
    const verdict = this.#rates.take({
      method: call.method,
      tier: rule.tier,
      app: caller.app.id,
      team: caller.teamId,
      channel: channelArgument(call.args),
      strictHistory: historyMethod && caller.app.distributed,
    });
    if (verdict.ok) return;
    if (!(historyMethod && caller.app.distributed)) this.#options.core.violations.push(`rate: ${verdict.rule}`);
    throw new RateRefusal(verdict.retryAfterSeconds);
  }

  #send(response: ServerResponse, result: Json, call: LoggedCall, caller: Caller): void {
    const limited = typeof result['retryAfter'] === 'number';
    call.outcome = limited ? '429' : result['ok'] === true ? 'ok' : String(result['error']);
    const scopes = caller.installation ? { 'x-oauth-scopes': [...caller.installation.scopes].join(',') } : {};
    if (limited)
      this.#write(
        response,
        429,
        { ...scopes, 'retry-after': String(result['retryAfter']) },
        JSON.stringify({ ok: false, error: 'ratelimited' }),
      );
    else this.#write(response, 200, scopes, JSON.stringify(result));
  }

  #write(
    response: ServerResponse,
    status: number,
    headers: Record<string, string>,
    body: string,
    type = 'application/json; charset=utf-8',
  ): void {
    response.writeHead(status, { 'content-type': type, ...headers });
    response.end(body);
  }

  /** Whose token this is, without judging it. */
  #guess(token: string, args: Json): Caller {
    const { world } = this.#options.core;
    for (const app of world.apps.values()) {
      if (app.appToken === token) return { kind: 'app', app, installation: null, teamId: '' };
    }
    const holds = (one: Installation) => one.tokens.some((held: Token) => held.value === token);
    const installation =
      world.installations.find((one) => one.active && holds(one)) ?? world.installations.find(holds) ?? null;
    if (!installation) return { kind: 'none', app: null, installation: null, teamId: '' };
    const wanted = typeof args['team_id'] === 'string' ? args['team_id'] : '';
    const teamId = installation.orgWide ? wanted : installation.team.id;
    return { kind: 'bot', app: installation.app, installation, teamId };
  }
}

class RateRefusal extends Error {
  readonly seconds: number;

  constructor(seconds: number) {
    super('ratelimited');
    this.seconds = seconds;
  }
}

function readToken(request: IncomingMessage, args: Json): string {
  const header = request.headers.authorization;
  if (header?.startsWith('Bearer ')) return header.slice('Bearer '.length);
  const token = args['token'];
  delete args['token'];
  return typeof token === 'string' ? token : '';
}

const channelArgument = (args: Json): string => {
  const value = args['channel'] ?? args['channel_id'] ?? '';
  return typeof value === 'string' ? value : '';
};

/** Forms with JSON inside, JSON itself, and nothing. */
function parseArguments(contentType: string, body: Buffer): Json {
  if (body.length === 0) return {};
  if (contentType.startsWith('application/json')) return JSON.parse(body.toString('utf8')) as Json;
  if (contentType.startsWith('multipart/')) return {};
  return Object.fromEntries(new URLSearchParams(body.toString('utf8')));
}
