import type { IncomingMessage } from 'node:http';
import { timingSafeEqual, createHash } from 'node:crypto';
import { z } from 'zod';
import { GatewayError } from '../../base/errors.js';
import { data, noContent, type Answer } from '../answer.js';
import type { SandboxDev } from '../options.js';
import { forbidden, Problem, unauthorized } from '../world/problem.js';
import { isSameOrigin } from '../target.js';
import { parseBody } from './body.js';
import type { Route } from './router.js';

const principal = z.string();
const times = z.number().int().positive().optional();
const newUser = z.object({
  handle: z.string(),
  name: z.string(),
  email: z.string().nullish(),
  id: z.string().nullish(),
  api_key: z.string().nullish(),
});
const newAgent = z.object({
  owner_handle: z.string(),
  name: z.string(),
  description: z.string(),
  id: z.string().nullish(),
  api_key: z.string().nullish(),
  global: z.boolean().nullish(),
  tags: z.array(z.string()).nullish(),
});
const seedChoice = z.object({ seed: z.enum(['demo', 'empty']).optional() });
const closing = z.object({
  principal_id: principal,
  code: z
    .union([z.literal(1006), z.number().int().min(1000).max(4999)])
    .refine(isSendable, { error: 'is not a close code' }),
  reason: z.string().max(100).optional(),
});
const crash = z.object({ principal_id: principal, topic: z.string() });
const upgradeFault = z.object({
  mode: z.enum(['refuse', 'hold']),
  principal_id: principal.optional(),
  status: z.number().int().min(400).max(599).optional(),
  retry_after: z.number().nonnegative().optional(),
  times,
});
const restFault = z.object({
  method: z.string().optional(),
  path: z.string().optional(),
  caller_id: principal.optional(),
  times,
  skip: z.number().int().nonnegative().optional(),
  status: z.number().int().min(200).max(599).optional(),
  body: z.unknown().optional(),
  headers: z.record(z.string(), z.string()).optional(),
  delay_ms: z.number().nonnegative().max(600_000).optional(),
  drop: z.enum(['before', 'after']).optional(),
});
const pushFault = z.object({
  mode: z.enum(['duplicate', 'withhold', 'drop']),
  principal_id: principal.optional(),
  event: z.string().optional(),
  times,
});
const switches = z.object({
  takeover_cooldown_ms: z.number().nonnegative().optional(),
  delivery_status_on_own_rows: z.boolean().optional(),
  repeated_processing_keeps_attempt: z.boolean().optional(),
});

/** The development surface over HTTP: `/dev/v1/…`, {@link SandboxDev} in the wire's spelling. */
export function devRoutes(dev: SandboxDev): Route[] {
  return [
    devRoute('POST', '/users', (body) => {
      const { email, id, api_key: apiKey, ...rest } = parseBody(newUser, body);
      const user = dev.addUser({
        ...rest,
        email: email ?? undefined,
        id: id ?? undefined,
        apiKey: apiKey ?? undefined,
      });
      return data({ id: user.id, handle: user.handle, api_key: user.apiKey }, 201);
    }),
    devRoute('POST', '/agents', (body) => {
      const wanted = parseBody(newAgent, body);
      const agent = dev.addAgent({
        ownerHandle: wanted.owner_handle,
        name: wanted.name,
        description: wanted.description,
        id: wanted.id ?? undefined,
        apiKey: wanted.api_key ?? undefined,
        global: wanted.global ?? undefined,
        tags: wanted.tags ?? undefined,
      });
      return data({ id: agent.id, handle: agent.handle, owner_id: agent.ownerId, api_key: agent.apiKey }, 201);
    }),
    devRoute('POST', '/reset', (body) => {
      dev.reset(parseBody(seedChoice, body).seed);
      return noContent;
    }),
    devRoute('GET', '/state', () => data(snake(dev.state()))),
    devRoute('POST', '/sockets/close', (body) => {
      const { principal_id: id, code, reason } = parseBody(closing, body);
      return data({ closed: dev.closeSockets(id, code, reason) });
    }),
    devRoute('POST', '/channels/crash', (body) => {
      const { principal_id: id, topic } = parseBody(crash, body);
      return data({ crashed: dev.crashChannel(id, topic) });
    }),
    devRoute('POST', '/faults/upgrades', (body) => {
      const { principal_id: principalId, retry_after: retryAfter, ...rest } = parseBody(upgradeFault, body);
      dev.faultUpgrades({ ...rest, principalId, retryAfter });
      return noContent;
    }),
    devRoute('POST', '/faults/rest', (body) => {
      const { caller_id: callerId, delay_ms: delayMs, ...rest } = parseBody(restFault, body);
      dev.faultRest({ ...rest, callerId, delayMs });
      return noContent;
    }),
    devRoute('POST', '/faults/pushes', (body) => {
      const { principal_id: principalId, ...rest } = parseBody(pushFault, body);
      dev.faultPushes({ ...rest, principalId });
      return noContent;
    }),
    devRoute('POST', '/pushes/release', () => data({ sent: dev.releasePushes() })),
    devRoute('DELETE', '/faults', () => {
      dev.clearFaults();
      return noContent;
    }),
    devRoute('POST', '/switches', (body) => {
      const wanted = parseBody(switches, body);
      const { takeover_cooldown_ms: cooldown, delivery_status_on_own_rows: shown } = wanted;
      const { repeated_processing_keeps_attempt: keeps } = wanted;
      dev.set({
        ...(cooldown === undefined ? {} : { takeoverCooldownMs: cooldown }),
        ...(shown === undefined ? {} : { deliveryStatusOnOwnRows: shown }),
        ...(keeps === undefined ? {} : { repeatedProcessingKeepsAttempt: keeps }),
      });
      return noContent;
    }),
  ];
}

/**
 * Who may use the development surface: with a token whoever has it; otherwise loopback callers, unless a browser sends
 * them from a page of another origin or under another host's name.
 */
export function devJudge(token: string | null): (request: IncomingMessage) => Problem | null {
  return (request) => {
    if (token !== null) {
      const given = /^Bearer\s+(\S+)\s*$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
      return timingSafeEqual(digest(given), digest(token)) ? null : unauthorized();
    }
    const host = (request.headers.host ?? '').replace(/:\d+$/, '');
    const isLocal = isLoopback(request.socket.remoteAddress ?? '') && isLoopback(host);
    return isLocal && isSameOrigin(request) ? null : forbidden('The development surface answers loopback callers only');
  };
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

const isLoopback = (host: string): boolean =>
  /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?|::ffff:127(\.\d{1,3}){3})$/i.test(host);

/** Codes that an endpoint may send itself; 1006 stands for none at all. */
function isSendable(code: number): boolean {
  return code === 1006 || code >= 3000 || (code >= 1000 && code <= 1014 && ![1004, 1005].includes(code));
}

function devRoute(method: string, path: string, handle: (body: unknown) => Answer): Route {
  return {
    method,
    path: `/dev/v1${path}`,
    surface: 'dev',
    handle: ({ body }) => {
      try {
        return handle(body);
      } catch (error) {
        if (error instanceof GatewayError && error.cause instanceof Problem) throw error.cause;
        throw error;
      }
    },
  };
}

function snake(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snake);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      key === 'metadata' || key === 'deliveries' ? inner : snake(inner),
    ]),
  );
}
