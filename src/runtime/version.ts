/** Compatibility level of this runtime: the release of the Python SDK whose documented behaviour it has. */
export const BAND_SDK_VERSION = '6.0.1';

/** Sent as the key where a proxy puts in the real one; an ordinary value to this runtime. */
export const PROXY_MANAGED_API_KEY = 'proxy-managed';
