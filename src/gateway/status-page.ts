import { Html, markup } from './markup.js';
import type { AgentReport, GatewayReport } from './report.js';

/** Written here and nowhere else, so that the page needs no second request and the policy can name its hash. */
export const STATUS_STYLE = `
:root { color-scheme: light dark; --line: #8884; --good: #0a7d33; --fair: #8a5a00; --bad: #b3261e; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 64rem; font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 0 0 .25rem; }
small, footer { color: GrayText; font-weight: normal; }
section { border: 1px solid var(--line); border-radius: 8px; padding: .75rem 1rem; margin: 1rem 0; }
.state { display: inline-block; padding: 0 .5rem; border-radius: 1rem; color: #fff; background: var(--bad); }
.state.good { background: var(--good); }
.state.fair { background: var(--fair); }
.problem { border-left: 4px solid var(--bad); padding-left: .5rem; }
.problems { padding-left: 1.2rem; margin: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin-top: .75rem; }
caption { text-align: left; font-weight: 600; }
th, td { text-align: left; vertical-align: top; padding: .2rem .75rem .2rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
`;

/** Seconds between two looks; the page asks for itself again. */
export const REFRESH_SECONDS = 5;

/** The status page: one document without scripts, everything from outside escaped. */
export function statusPage(report: GatewayReport): string {
  const [word, look] = stateOf(report);
  const page = markup`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta http-equiv="refresh" content="${REFRESH_SECONDS}" />
        <title>${word} · band-gateway</title>
        <style>${new Html(STATUS_STYLE)}</style>
      </head>
      <body>
        <header>
          <h1>band-gateway <small>${report.version}</small></h1>
          <p>
            <span class="state ${look}">${word}</span> up
            ${duration(report.now - report.startedAt)} · platform ${report.platformUrl} · served at
            ${report.publicUrl ?? 'an unknown address'}
          </p>
        </header>
        <main>
          ${blockersPart(report)} ${noticesPart(report)}
          ${report.agents.length === 0 ? markup`<p>No agent is configured.</p>` : report.agents.map((agent) => agentPart(agent, report.now))}
        </main>
        <footer>As of ${new Date(report.now).toISOString()}; renewed every ${REFRESH_SECONDS} seconds.</footer>
      </body>
    </html>
`;
  return page.text;
}

/** Degraded: everything runs, and a bridge says that part of its work waits for somebody. */
function stateOf({ blockers, agents }: GatewayReport): readonly [word: string, look: string] {
  if (blockers.length > 0) return ['not ready', 'bad'];
  const degraded = agents.some(({ bridge }) => (bridge?.lastErrors.length ?? 0) > 0);
  return degraded ? ['degraded', 'fair'] : ['ready', 'good'];
}

function blockersPart({ blockers, now }: GatewayReport): Html | null {
  if (blockers.length === 0) return null;
  return markup`<section>
    <h2>What is in the way</h2>
    <ul class="problems">
      ${blockers.map(
        (one) =>
          markup`<li>
            <strong>${one.name}</strong>: ${one.message} <em>${one.action}</em>
            <small>for ${duration(now - one.since)}</small>
          </li>`,
      )}
    </ul>
  </section>`;
}

function noticesPart({ notices, now }: GatewayReport): Html | null {
  if (notices.length === 0) return null;
  return markup`<section>
    <h2>What happened</h2>
    <ul class="problems">
      ${notices.map(({ at, text, action }) => markup`<li>${text} <em>${action}</em> <small>${ago(now - at)}</small></li>`)}
    </ul>
  </section>`;
}

function agentPart(agent: AgentReport, now: number): Html {
  const good = agent.state === 'running';
  return markup`<section>
    <h2>${agent.name} <small>${agent.agentName === '' ? '' : `${agent.agentName} · `}${agent.bridgeName}</small></h2>
    <p>
      <span class="state ${good ? 'good' : 'bad'}">${agent.state}</span> for
      ${duration(now - agent.since)}${
        agent.nextTryAt === null ? '' : `, next try in ${duration(agent.nextTryAt - now)}`
      }
    </p>
    ${agent.problem && markup`<p class="problem">${agent.problem.code}: ${agent.problem.message} <em>${agent.problem.action}</em></p>`}
    ${linksTable(agent, now)} ${queuesTable(agent)} ${errorsTable(agent, now)} ${lettersTable(agent, now)}
    ${recentTable(agent, now)}
  </section>`;
}

function linksTable({ link, bridge }: AgentReport, now: number): Html | null {
  const band = link
    ? [{ name: 'Band', state: link.why === null ? link.state : `${link.state}: ${link.why}`, since: link.since }]
    : [];
  const rows = [...band, ...(bridge?.links ?? [])];
  return table(
    'Links',
    ['Link', 'State', 'For'],
    rows.map(({ name, state, since }) => [name, state, duration(now - since)]),
  );
}

function queuesTable({ bridge }: AgentReport): Html | null {
  const rows = (bridge?.queues ?? []).map(({ name, depth, dead }) => [name, String(depth), String(dead)]);
  return table('Queues', ['Queue', 'Waiting', 'Given up'], rows);
}

function errorsTable({ bridge }: AgentReport, now: number): Html | null {
  const rows = (bridge?.lastErrors ?? []).map(({ at, code, text, action }) => [ago(now - at), code, text, action]);
  return table('Last errors', ['When', 'Code', 'What', 'What to do'], rows);
}

function lettersTable({ deadLetters, name }: AgentReport, now: number): Html | null {
  const rows = deadLetters.map(({ id, queue, conversation, code, reason, at }) => [
    ago(now - at),
    queue,
    conversation,
    `${code}: ${reason}`,
    `band-gateway dead retry ${name} ${id}`,
  ]);
  return table('Could not be delivered', ['When', 'Queue', 'Conversation', 'Why', 'Try again'], rows);
}

function recentTable({ bridge }: AgentReport, now: number): Html | null {
  const rows = (bridge?.recent ?? []).map(({ at, conversation, what }) => [ago(now - at), conversation, what]);
  return table('Recent deliveries', ['When', 'Conversation', 'What'], rows);
}

function table(caption: string, heads: readonly string[], rows: readonly (readonly string[])[]): Html | null {
  if (rows.length === 0) return null;
  return markup`<div class="scroll">
    <table>
      <caption>
        ${caption}
      </caption>
      <thead>
        <tr>
          ${heads.map((head) => markup`<th scope="col">${head}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            markup`<tr>
              ${row.map((cell) => markup`<td>${cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** `3 s`, `12 min`, `5 h`, `3 d`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} d`;
}

function ago(ms: number): string {
  return `${duration(ms)} ago`;
}
