import { z } from 'zod';
import { setting, settingsGroup, type OptionsInputOf, type OptionsOf } from '../config/setting.js';

const peer = z.string().min(1);
const seconds = z.number().positive();

/** What an operator can set about the brain that carries messages to Band peers and answers back. */
export const relaySettings = settingsGroup('relay', {
  peer: setting(peer.optional(), { help: 'Peer that is asked when nothing else names one: its handle, id or name.' }),
  channels: setting(z.record(z.string(), peer).default({}), { help: 'Peer by outside channel id.' }),
  allow: setting(z.array(peer).default([]), {
    help: 'Peers that may be asked, by handle, id or name; empty: all peers of the agent.',
  }),
  slow_after_seconds: setting(seconds.default(60), {
    help: 'Silence of the peer after which the person is told that it takes longer, in seconds.',
  }),
  timeout_seconds: setting(seconds.default(900), {
    help: 'Silence of the peer after which the person is told that no answer came, in seconds.',
  }),
  hop_limit: setting(z.int().min(1).default(20), {
    help: 'Answers in a row that reach the outside without a person writing in between.',
  }),
});

export type RelayOptions = OptionsOf<typeof relaySettings>;
export type RelayOptionsInput = OptionsInputOf<typeof relaySettings>;
