import { byId, el } from './dom.js';
import { complete, matching, mentionedIn, openMention, spelling, type OpenMention } from './mention.js';
import type { Participant } from './wire.js';

const MAX_SUGGESTIONS = 8;

export interface ComposerDeps {
  /** Whom a message of the shown room can be for; the person is not among them. */
  readonly people: () => readonly Participant[];
  readonly send: (content: string, mentionIds: readonly string[]) => Promise<void>;
  readonly complain: (message: string) => void;
}

/** The text box with its `@` completion. Enter sends, Shift+Enter makes a line; arrows, Enter or Tab choose a name. */
export function setUpComposer({ people, send, complain }: ComposerDeps): { focus(): void } {
  const form = byId('composer', HTMLFormElement);
  const box = byId('text', HTMLTextAreaElement);
  const list = byId('suggestions', HTMLUListElement);
  let mention: OpenMention | null = null;
  let found: Participant[] = [];
  let chosen = 0;

  const close = (): void => {
    mention = null;
    found = [];
    list.hidden = true;
    list.replaceChildren();
    box.setAttribute('aria-expanded', 'false');
    box.removeAttribute('aria-activedescendant');
  };
  const show = (): void => {
    list.replaceChildren(
      ...found.map((who, index) =>
        el(
          'li',
          {
            id: `suggestion-${index}`,
            role: 'option',
            'aria-selected': String(index === chosen),
            mousedown: (event) => {
              event.preventDefault();
              take(index);
            },
          },
          el('strong', {}, who.name),
          ` ${spelling(who)}`,
        ),
      ),
    );
    list.hidden = false;
    box.setAttribute('aria-expanded', 'true');
    box.setAttribute('aria-activedescendant', `suggestion-${chosen}`);
  };
  const take = (index: number): void => {
    const who = found[index];
    if (!who || !mention) return;
    const done = complete(box.value, box.selectionStart, mention, who);
    box.value = done.text;
    box.setSelectionRange(done.caret, done.caret);
    close();
    box.focus();
  };
  const look = (): void => {
    mention = openMention(box.value, box.selectionStart);
    found = mention ? matching(people(), mention.query).slice(0, MAX_SUGGESTIONS) : [];
    chosen = 0;
    if (found.length > 0) show();
    else close();
  };
  const grow = (): void => {
    box.rows = Math.min(8, Math.max(1, box.value.split('\n').length));
  };
  const submit = async (): Promise<void> => {
    const content = box.value.trim();
    if (content === '') return;
    const agents = people().filter(({ type }) => type === 'Agent');
    let mentions = mentionedIn(content, people());
    // With one agent in the room there is no doubt whom a message is for.
    if (mentions.length === 0 && agents.length === 1) mentions = agents.map(({ id }) => id);
    if (mentions.length === 0) {
      complain(
        agents.length === 0 ? 'Add an agent to the room first.' : 'Say whom it is for: type @ and choose a name.',
      );
      return;
    }
    await send(content, mentions);
    box.value = '';
    grow();
    close();
  };

  box.addEventListener('input', () => {
    grow();
    look();
  });
  box.addEventListener('blur', close);
  box.addEventListener('keydown', (event) => {
    if (!list.hidden && found.length > 0) {
      const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
      if (step !== 0) {
        chosen = (chosen + step + found.length) % found.length;
        show();
      } else if (event.key === 'Enter' || event.key === 'Tab') take(chosen);
      else if (event.key === 'Escape') close();
      else return;
      event.preventDefault();
      return;
    }
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    submit().catch((error: unknown) => {
      complain(error instanceof Error ? error.message : String(error));
    });
  });
  return {
    focus() {
      box.focus();
    },
  };
}
