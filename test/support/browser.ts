import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { chromium, type Page } from 'playwright-core';

/** Where the browser is; tests that need one are skipped on machines without. */
export const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
export const hasChromium = existsSync(CHROMIUM);

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export interface TestBrowser {
  readonly page: Page;
  /** Errors of the page and broken rules of its policy, as they came. */
  readonly complaints: readonly string[];
  /** Addresses of every request the page made. */
  readonly requested: readonly string[];
  close(): Promise<void>;
}

/** A headless Chromium with an empty profile. */
export async function openBrowser(viewport = { width: 1_200, height: 760 }): Promise<TestBrowser> {
  const profile = mkdtempSync(path.join(tmpdir(), 'gateway-browser-'));
  const context = await chromium.launchPersistentContext(profile, { executablePath: CHROMIUM, args: FLAGS, viewport });
  const page = context.pages()[0] ?? (await context.newPage());
  page.setDefaultTimeout(10_000);
  const complaints: string[] = [];
  const requested: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('request', (request) => requested.push(request.url()));
  return {
    page,
    complaints,
    requested,
    async close() {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}
