/** As told to editors; equal to the package's version. */
export const GATEWAY_VERSION = '0.1.0';
