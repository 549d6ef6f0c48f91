/** The console's style sheet: system colours, so that it follows the visitor's light or dark choice. */
export const CONSOLE_STYLE = `
:root {
  color-scheme: light dark;
  --line: #8883; --soft: #8881; --accent: #2f5fd0; --good: #0a7d33; --bad: #b3261e; --warn: #9a6700;
}
@media (prefers-color-scheme: dark) { :root { --accent: #8fb0ff; --good: #5bd187; --bad: #ff8a80; --warn: #f2c14e; } }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
html, body { height: 100%; }
body { margin: 0; font: 15px/1.45 system-ui, sans-serif; }
h1, h2 { font-size: 1.05rem; margin: 0; }
ul { list-style: none; margin: 0; padding: 0; }
button, input, select, textarea { font: inherit; border: 1px solid var(--line); border-radius: 6px; padding: .35rem .6rem; background: transparent; color: inherit; }
button { cursor: pointer; background: var(--soft); }
button:hover { border-color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
small, time, .kind, #me { color: GrayText; font-size: .85em; }

#sign-in { max-width: 24rem; margin: 15vh auto; padding: 1rem; display: grid; gap: .6rem; }

#app { height: 100dvh; display: grid; grid-template-columns: 15rem minmax(0, 1fr) 16rem; }
nav, aside { padding: .75rem; overflow-y: auto; display: flex; flex-direction: column; gap: .75rem; }
nav { border-right: 1px solid var(--line); }
aside { border-left: 1px solid var(--line); }
nav header { display: flex; flex-wrap: wrap; gap: .4rem; align-items: baseline; }
#link { font-size: .8em; color: var(--warn); margin-left: auto; }
#link.on { color: var(--good); }
form { display: flex; gap: .4rem; }
form input, form select { min-width: 0; flex: 1; }
#rooms button { width: 100%; display: flex; justify-content: space-between; gap: .5rem; text-align: left; border-color: transparent; background: none; }
#rooms button:hover { background: var(--soft); }
#rooms button[aria-current] { background: var(--soft); font-weight: 600; }
#rooms .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.unread { background: var(--accent); color: Canvas; border-radius: 1rem; padding: 0 .45rem; font-size: .8em; }

main { display: flex; flex-direction: column; min-height: 0; min-width: 0; }
main > header { display: flex; align-items: center; justify-content: space-between; gap: .5rem; padding: .6rem 1rem; border-bottom: 1px solid var(--line); }
main h2 { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
#delete { font-size: .85em; color: var(--bad); }
#notice { margin: 0; padding: .5rem 1rem; color: var(--bad); background: var(--soft); }
#room { flex: 1; min-height: 0; display: flex; flex-direction: column; }
#timeline { flex: 1; overflow-y: auto; padding: 1rem; display: flex; flex-direction: column; gap: .6rem; }
#timeline > :first-child { margin-top: auto; }
article { max-width: 46rem; overflow-wrap: anywhere; }
article header { display: flex; gap: .5rem; align-items: baseline; }
article .body { white-space: pre-wrap; }
article.text .body { background: var(--soft); border-radius: 8px; padding: .45rem .7rem; display: inline-block; }
article.own { align-self: flex-end; text-align: right; }
article.own header { justify-content: flex-end; }
article.own .body { text-align: left; background: color-mix(in srgb, var(--accent) 18%, transparent); }
article.event { font-size: .9em; border-left: 3px solid var(--line); padding-left: .6rem; }
article.error { border-left-color: var(--bad); }
.mention { color: var(--accent); font-weight: 600; }
details summary { cursor: pointer; color: GrayText; font-size: .85em; }
pre { margin: .2rem 0; padding: .5rem; background: var(--soft); border-radius: 6px; overflow-x: auto; font-size: .85em; }
.deliveries { display: flex; flex-wrap: wrap; gap: .3rem; margin-top: .25rem; font-size: .78em; }
.own .deliveries { justify-content: flex-end; }
.deliveries li { border: 1px solid var(--line); border-radius: 1rem; padding: 0 .5rem; }
.deliveries .processed { color: var(--good); }
.deliveries .failed { color: var(--bad); }
.deliveries .processing { color: var(--warn); }
.working, .nothing { color: GrayText; margin: 0; font-style: italic; }
.older { align-self: center; }

#composer { position: relative; padding: .75rem 1rem; border-top: 1px solid var(--line); align-items: flex-end; }
#text { flex: 1; resize: none; min-width: 0; }
#composer button { background: var(--accent); color: Canvas; border-color: transparent; }
#suggestions { position: absolute; bottom: 100%; left: 1rem; right: 1rem; max-width: 24rem; background: Canvas; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; box-shadow: 0 4px 16px #0003; }
#suggestions li { padding: .35rem .7rem; cursor: pointer; }
#suggestions li[aria-selected="true"] { background: var(--accent); color: Canvas; }

#people { display: grid; gap: .6rem; }
#people li { border: 1px solid var(--line); border-radius: 8px; padding: .45rem .6rem; }
#people small { display: block; overflow-wrap: anywhere; }
.status { font-size: .8em; }
.status.stopped, .status.offline { color: var(--bad); }
.status.working { color: var(--warn); }
.buttons { display: flex; gap: .4rem; margin-top: .35rem; }
.buttons button { font-size: .85em; padding: .15rem .5rem; }

@media (max-width: 50rem) {
  #app { height: auto; min-height: 100dvh; grid-template-columns: minmax(0, 1fr); grid-template-rows: auto minmax(0, 1fr) auto; }
  nav, aside { border: 0; overflow: visible; }
  nav { border-bottom: 1px solid var(--line); }
  aside { border-top: 1px solid var(--line); }
  #rooms { display: flex; overflow-x: auto; gap: .3rem; }
  #rooms button { width: auto; max-width: 12rem; border-color: var(--line); }
  main { height: 75dvh; }
  button, input, select, textarea { min-height: 2.6rem; }
  .buttons button { min-height: 2rem; }
}
`;
