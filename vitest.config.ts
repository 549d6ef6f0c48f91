import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Forked workers: native modules and process-wide state (signals, environment) stay apart between files.
    pool: 'forks',
    reporters: ['default', './test/support/summary-reporter.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    unstubEnvs: true,
    // Hundreds of tests start real processes, sockets and browsers: where a busy machine trips one, it runs once more.
    retry: process.env['CI'] ? 1 : 0,
  },
});
