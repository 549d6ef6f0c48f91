import type { DefaultAgent } from '../config/load.js';
import { DEMO } from '../sandbox/seed.js';

/** The Agent that the service runs when nothing is configured: an A2A door to the demo agents, for this machine only. */
export const DEMO_GATEWAY: DefaultAgent = {
  name: 'demo',
  values: { agent_id: DEMO.gateway.id, api_key: DEMO.gateway.apiKey, bridge: 'a2a', single_instance: false },
  groups: { a2a: { auth: { anonymous: 'loopback' } } },
};
