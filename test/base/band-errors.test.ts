import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  AgentAlreadyRunningError,
  ApiError,
  BandConfigError,
  BandConnectionError,
  BandError,
  BandToolError,
  CleanupIncompleteError,
  DeliveryFailedError,
  InputNotAccepted,
  publicError,
  RoomExecutionStoppedError,
  RuntimeError,
  TurnEndedError,
  TurnResultAlreadyReported,
  ValidationError,
  ValueError,
} from '../../src/base/band-errors.js';
import { GatewayError } from '../../src/base/errors.js';

describe('public errors', () => {
  it.each<[Error, string, abstract new (...args: never[]) => Error]>([
    [new BandConfigError('m'), 'BandConfigError', BandError],
    [new AgentAlreadyRunningError('m'), 'AgentAlreadyRunningError', BandConfigError],
    [new CleanupIncompleteError(), 'CleanupIncompleteError', BandError],
    [new BandConnectionError('m'), 'BandConnectionError', BandError],
    [new BandToolError('m'), 'BandToolError', BandError],
    [new TurnEndedError(), 'TurnEndedError', BandToolError],
    [new InputNotAccepted('m'), 'InputNotAccepted', BandError],
    [new TurnResultAlreadyReported('m'), 'TurnResultAlreadyReported', BandError],
    [new RoomExecutionStoppedError('r'), 'RoomExecutionStoppedError', BandError],
    [new DeliveryFailedError('m'), 'DeliveryFailedError', BandError],
    [new ApiError({ statusCode: 500 }), 'ApiError', BandError],
    [new ValueError('m'), 'ValueError', Error],
    [new RuntimeError('m'), 'RuntimeError', Error],
    [new ValidationError('T', []), 'ValidationError', Error],
  ])('%s carries its class name and its base', (error, name, base) => {
    expect(error.name).toBe(name);
    expect(error).toBeInstanceOf(base);
    expect(error.stack).toContain(name);
  });

  it('R-093 AgentAlreadyRunningError is a BandConfigError', () => {
    expect(new AgentAlreadyRunningError('m')).toBeInstanceOf(BandConfigError);
  });

  it('R-040 CleanupIncompleteError says how to go on', () => {
    expect(new CleanupIncompleteError().message).toBe('Agent cleanup is incomplete; call stop() to retry it');
  });

  it('a stopped room is named', () => {
    const error = new RoomExecutionStoppedError('room-7');
    expect([error.roomId, error.message]).toEqual(['room-7', 'The agent is stopped in room room-7']);
  });
});

describe('ApiError', () => {
  it.each([
    [401, null, '401 Unauthorized'],
    [403, 'not a participant', '403 Forbidden: not a participant'],
    [599, null, '599 Unknown Status'],
  ])('R-041 status %i with message %j reads %s', (statusCode, message, text) => {
    expect(new ApiError({ statusCode, message }).message).toBe(text);
  });
});

describe('ValidationError', () => {
  it('R-153 an unknown field reads that extra inputs are not permitted', () => {
    const schema = z.strictObject({ name: z.string(), deep: z.strictObject({ a: z.number().optional() }).optional() });
    const parsed = schema.safeParse({ name: 1, other: 2, deep: { b: 3, c: 4 } });
    const error = ValidationError.fromZod('WeatherAdapterConfig', parsed.error!);
    expect(error.title).toBe('WeatherAdapterConfig');
    expect(error.issues.map(({ path, message }) => [path.join('.'), message])).toEqual([
      ['name', expect.any(String)],
      ['deep.b', 'Extra inputs are not permitted'],
      ['deep.c', 'Extra inputs are not permitted'],
      ['other', 'Extra inputs are not permitted'],
    ]);
    expect(error.message).toMatch(
      /^4 validation errors for WeatherAdapterConfig\nname\n {2}.*\ndeep\.b\n {2}Extra inputs/,
    );
  });
});

describe('publicError', () => {
  const cause = new ApiError({ statusCode: 403 });

  it('R-272 an answer of the platform surfaces as that answer', () => {
    expect(publicError(new GatewayError('BAND_FORBIDDEN', { cause }), 'r')).toBe(cause);
  });

  it('a stop in the room surfaces as such, where the room is known', () => {
    const stopped = new GatewayError('BAND_ROOM_STOPPED', { cause });
    expect(publicError(stopped, 'r')).toMatchObject({ name: 'RoomExecutionStoppedError', roomId: 'r', cause: stopped });
    expect(publicError(stopped)).toBe(cause);
  });

  it('R-042 no answer at all surfaces as a connection error that says why', () => {
    const refused = new GatewayError('BAND_UNREACHABLE', { cause: new Error('connect ECONNREFUSED 127.0.0.1:9') });
    expect(publicError(refused)).toMatchObject({
      name: 'BandConnectionError',
      message: 'Band could not be reached. (connect ECONNREFUSED 127.0.0.1:9)',
      cause: refused,
    });
  });

  it('anything else comes back as it is', () => {
    const bad = new GatewayError('BAND_BAD_ANSWER');
    for (const error of [bad, new Error('x'), 'text', undefined]) expect(publicError(error, 'r')).toBe(error);
  });
});
