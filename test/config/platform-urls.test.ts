import { afterEach, describe, expect, it, vi } from 'vitest';
import { BAND_CLOUD, resolvePlatformUrls } from '../../src/config/platform-urls.js';

const OTHER = { wsUrl: 'ws://band.test/socket/websocket', restUrl: 'http://band.test' };
const ENV = { BAND_WS_URL: 'ws://env.test/socket/websocket', BAND_REST_URL: 'http://env.test' };
const FROM_ENV = { wsUrl: ENV.BAND_WS_URL, restUrl: ENV.BAND_REST_URL };

afterEach(() => {
  vi.unstubAllEnvs();
});

describe('resolvePlatformUrls', () => {
  it.each([[{}], [{ wsUrl: null }], [{ wsUrl: '' }], [{ wsUrl: undefined }]])(
    'R-004 without a socket address (%j) BAND_WS_URL is used',
    (given) => {
      expect(resolvePlatformUrls(given, ENV).wsUrl).toBe(ENV.BAND_WS_URL);
    },
  );

  it.each([[{}], [{ restUrl: null }], [{ restUrl: '' }], [{ restUrl: undefined }]])(
    'R-005 without a REST address (%j) BAND_REST_URL is used',
    (given) => {
      expect(resolvePlatformUrls(given, ENV).restUrl).toBe(ENV.BAND_REST_URL);
    },
  );

  it('R-004 R-005 the variables are found in any case', () => {
    const env = { band_ws_url: ENV.BAND_WS_URL, Band_Rest_Url: ENV.BAND_REST_URL };
    expect(resolvePlatformUrls({}, env)).toMatchObject(FROM_ENV);
  });

  it('R-006 an argument beats the environment', () => {
    expect(resolvePlatformUrls(OTHER, ENV)).toMatchObject(OTHER);
  });

  it('R-007 with neither argument nor environment the addresses are those of Band Cloud', () => {
    expect(resolvePlatformUrls({}, {})).toEqual({
      wsUrl: 'wss://app.band.ai/api/v1/socket/websocket',
      restUrl: 'https://app.band.ai',
      warning: null,
    });
  });

  it('R-008 an empty variable counts as unset', () => {
    expect(resolvePlatformUrls({}, { BAND_WS_URL: '', BAND_REST_URL: '' })).toMatchObject(BAND_CLOUD);
  });

  it('R-009 the two addresses are found each on its own', () => {
    expect(resolvePlatformUrls({ wsUrl: OTHER.wsUrl }, {})).toMatchObject({
      wsUrl: OTHER.wsUrl,
      restUrl: BAND_CLOUD.restUrl,
    });
    expect(resolvePlatformUrls({}, { BAND_REST_URL: ENV.BAND_REST_URL })).toMatchObject({
      wsUrl: BAND_CLOUD.wsUrl,
      restUrl: ENV.BAND_REST_URL,
    });
  });

  it('R-010 exactly one address at its default is worth a warning that names both variables', () => {
    const half = [
      resolvePlatformUrls({ wsUrl: OTHER.wsUrl }, {}),
      resolvePlatformUrls({}, { BAND_REST_URL: ENV.BAND_REST_URL }),
    ];
    for (const { warning } of half) expect(warning).toMatch(/BAND_REST_URL.*BAND_WS_URL|BAND_WS_URL.*BAND_REST_URL/);
    expect(half[0]?.warning).not.toBe(half[1]?.warning);
    const whole = [resolvePlatformUrls({}, {}), resolvePlatformUrls(OTHER, {}), resolvePlatformUrls({}, ENV)];
    expect(whole.map(({ warning }) => warning)).toEqual([null, null, null]);
  });

  it('R-011 the process environment is read at the time of the call', () => {
    vi.stubEnv('BAND_WS_URL', 'ws://first.test');
    expect(resolvePlatformUrls({}).wsUrl).toBe('ws://first.test');
    vi.stubEnv('BAND_WS_URL', 'ws://second.test');
    expect(resolvePlatformUrls({}).wsUrl).toBe('ws://second.test');
  });
});
