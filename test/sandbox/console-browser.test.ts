import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { startDemo, type Demo } from '../../src/gateway/demo.js';
import { DEMO } from '../../src/sandbox/index.js';
import { hasChromium, openBrowser, type TestBrowser } from '../support/browser.js';
import { sandboxPerson, type SandboxPerson } from '../support/sandbox-person.js';

describe.skipIf(!hasChromium)('the console in a browser', () => {
  let demo: Demo;
  let browser: TestBrowser;
  let person: SandboxPerson;

  beforeAll(async () => {
    demo = await startDemo({ port: 0, dataDir: null }, { clock: systemClock, log: silentLogger });
    person = await sandboxPerson(demo.sandbox);
    browser = await openBrowser();
    await browser.page.goto(`${demo.sandbox.restUrl}/`);
    await browser.page.getByText('connected', { exact: true }).waitFor();
  });
  afterAll(async () => {
    await browser.close();
    await person.close();
    await demo.stop();
  });

  const messages = () => browser.page.locator('#timeline article');

  it('opens a room, adds an agent, completes its name by keyboard and shows the answer with delivery states', async () => {
    const { page } = browser;
    await page.getByPlaceholder('New room').fill('Dice evening');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Dice evening' }).waitFor();
    await page.getByLabel('Somebody to add').selectOption({ label: 'Dice (demo/dice)' });
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByRole('group', { name: 'Dice' }).waitFor();

    await page.getByPlaceholder('Write; @').pressSequentially('for me @di');
    await page.getByRole('option', { name: 'Dice' }).waitFor();
    await page.keyboard.press('Enter');
    await page.keyboard.type('1d2');
    await page.keyboard.press('Enter');

    await page.getByText('Dice: processed').waitFor();
    await messages().filter({ hasText: '1d2: ' }).waitFor();
    const kinds = await page.locator('#timeline .kind').allTextContents();
    expect(kinds).toEqual(['thought', 'tool call', 'tool result']);
    expect(await page.getByPlaceholder('Write; @').inputValue()).toBe('');
  });

  it('shows what others do as it happens, markup as text', async () => {
    const { page } = browser;
    const roomId = await person.createRoom([DEMO.echo.id], 'From elsewhere <img src=x onerror=alert(1)>');
    await page.getByRole('button', { name: 'From elsewhere' }).click();
    await person.post(roomId, '@demo/echo <script>alert(1)</script>', [DEMO.echo.id]);
    await messages().filter({ hasText: 'echo: <script>alert(1)</script>' }).waitFor();
    expect(await page.locator('#timeline script, #timeline img, #title img').count()).toBe(0);
  });

  it('shows who was added while the list was on its way', async () => {
    const { page } = browser;
    const roomId = await person.createRoom([], 'Late list');
    let deliver = (): void => undefined;
    const held = new Promise<void>((resolve) => (deliver = resolve));
    let read = (): void => undefined;
    const old = new Promise<void>((resolve) => (read = resolve));
    await page.route(
      `**/chats/${roomId}/participants*`,
      async (route) => {
        const response = await route.fetch();
        read();
        await held;
        await route.fulfill({ response });
      },
      { times: 1 },
    );
    await page.getByRole('button', { name: 'Late list' }).click();
    await old;
    await person.add(roomId, DEMO.dice.id);
    await page.getByRole('group', { name: 'Dice' }).waitFor();
    const again = page.waitForResponse((response) => response.url().includes('/executions'));
    deliver();
    await again;
    expect(await page.getByRole('group', { name: 'Dice' }).count()).toBe(1);
  });

  it('keeps who is chosen to be added while the list comes anew', async () => {
    const { page } = browser;
    const roomId = await person.createRoom([], 'Who comes');
    await page.getByRole('button', { name: 'Who comes' }).click();
    const choice = page.getByLabel('Somebody to add');
    await choice.selectOption({ label: 'Helpdesk (demo/helpdesk)' });
    await person.add(roomId, DEMO.dice.id);
    await page.getByRole('group', { name: 'Dice' }).waitFor();
    await page.getByRole('button', { name: 'Who comes' }).click();
    await choice.locator('option', { hasText: 'Dice' }).waitFor({ state: 'detached' });
    expect(await choice.inputValue()).toBe(DEMO.helpdesk.id);
  });

  it('stops an agent, keeps what is sent to it meanwhile, and plays it again', async () => {
    const { page } = browser;
    await person.createRoom([DEMO.echo.id], 'Stop and go');
    await page.getByRole('button', { name: 'Stop and go' }).click();
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByText('stopped', { exact: true }).waitFor();
    await page.getByPlaceholder('Write; @').fill('are you there');
    await page.keyboard.press('Enter');
    await messages().filter({ hasText: 'are you there' }).waitFor();
    expect(await messages().count()).toBe(1);
    await page.getByRole('button', { name: 'Play', exact: true }).click();
    await messages().filter({ hasText: 'echo: are you there' }).waitFor();
  });

  it('says what to do when a message is for nobody', async () => {
    const { page } = browser;
    await page.getByPlaceholder('New room').fill('Alone');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Alone' }).waitFor();
    await page.getByPlaceholder('Write; @').fill('hello?');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: 'Add an agent' }).waitFor();
    expect(await page.getByPlaceholder('Write; @').inputValue()).toBe('hello?');
  });

  it('comes back by itself after the connection broke, with what was said meanwhile', async () => {
    const { page } = browser;
    const roomId = await person.createRoom([DEMO.echo.id], 'Broken line');
    await page.getByRole('button', { name: 'Broken line' }).click();
    await page.getByRole('heading', { name: 'Broken line' }).waitFor();
    demo.sandbox.dev.closeSockets(DEMO.user.id, 1012);
    await person.call('POST', `/chats/${roomId}/messages`, {
      message: { content: 'while you were away', mentions: [{ id: DEMO.echo.id }] },
    });
    await messages().filter({ hasText: 'echo: while you were away' }).waitFor();
    await page.getByText('connected', { exact: true }).waitFor();
  });

  it('fits a phone without a scroll bar to the side', async () => {
    const { page } = browser;
    await page.setViewportSize({ width: 360, height: 720 });
    const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
    expect(overflow).toBe(0);
    await page.setViewportSize({ width: 1_200, height: 760 });
  });

  it('loads nothing from elsewhere and breaks no rule of its own policy', () => {
    const host = new URL(demo.sandbox.restUrl).host;
    expect(browser.requested.filter((url) => !url.startsWith('data:') && new URL(url).host !== host)).toEqual([]);
    // A socket that the platform closed on purpose is no fault of the page.
    expect(browser.complaints.filter((text) => !text.includes('WebSocket'))).toEqual([]);
  });
});
