import { LIMITS_EXTENSION } from '../extensions.js';
import type { PublishedPeer } from '../peers/directory.js';
import type { A2AOptions } from '../settings.js';

/** What is the same on every card of a gateway. */
export interface CardContext {
  readonly options: A2AOptions;
  /** Where the gateway is reached, without a trailing slash. */
  readonly baseUrl: string;
  readonly extendedCard: boolean;
  readonly authenticated: boolean;
}

type CardJson = Readonly<Record<string, unknown>>;

/** A card's content without `version`, which counts its changes. The wire form of 1.0. */
export function cardV1(peer: PublishedPeer, context: CardContext): CardJson {
  const { options } = context;
  return {
    name: peer.override?.name ?? peer.name,
    description: descriptionOf(peer),
    supportedInterfaces: interfacesOf(peer, context).map(({ binding, version, url }) => ({
      url,
      protocolBinding: binding,
      protocolVersion: version,
    })),
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: context.extendedCard },
    ...(context.authenticated && {
      securitySchemes: schemesV1(options),
      securityRequirements: schemeNames(options).map((name) => ({ schemes: { [name]: {} } })),
    }),
    defaultInputModes: peer.override?.inputModes ?? options.inputModes,
    defaultOutputModes: peer.override?.outputModes ?? options.outputModes,
    skills: skillsOf(peer),
  };
}

/** The same card in the wire form of 0.3. */
export function cardV03(peer: PublishedPeer, context: CardContext): CardJson {
  const { options } = context;
  const url = urlOf(peer, context);
  return {
    protocolVersion: '0.3.0',
    name: peer.override?.name ?? peer.name,
    description: descriptionOf(peer),
    url,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [{ url, transport: 'JSONRPC' }],
    capabilities: { streaming: true, pushNotifications: false },
    supportsAuthenticatedExtendedCard: context.extendedCard,
    ...(context.authenticated && {
      securitySchemes: schemesV03(options),
      security: schemeNames(options).map((name) => ({ [name]: [] })),
    }),
    defaultInputModes: peer.override?.inputModes ?? options.inputModes,
    defaultOutputModes: peer.override?.outputModes ?? options.outputModes,
    skills: skillsOf(peer),
  };
}

/** The public card with what only a known caller may see. */
export function extendedCard(card: CardJson, peer: PublishedPeer, options: A2AOptions): CardJson {
  const { limits } = options;
  const capabilities = card['capabilities'] as Record<string, unknown>;
  return {
    ...card,
    description: `${String(card['description'])}${peer.handle === null ? '' : `\nBand handle: @${peer.handle}`}`,
    capabilities: {
      ...capabilities,
      extensions: [
        {
          uri: LIMITS_EXTENSION,
          description: 'Limits that apply to this caller',
          required: false,
          params: {
            requestsPerMinute: limits.ratePerMin,
            bodyBytes: limits.bodyBytes,
            openTasks: limits.openTasksPerPrincipal,
            streams: limits.streamsPerPrincipal,
          },
        },
      ],
    },
  };
}

interface Interface {
  readonly binding: string;
  readonly version: string;
  readonly url: string;
}

function interfacesOf(peer: PublishedPeer, context: CardContext): Interface[] {
  const url = urlOf(peer, context);
  const { versions } = context.options;
  return [
    ...(versions.includes('1.0')
      ? [
          { binding: 'JSONRPC', version: '1.0', url },
          { binding: 'HTTP+JSON', version: '1.0', url },
        ]
      : []),
    ...(versions.includes('0.3') ? [{ binding: 'JSONRPC', version: '0.3', url }] : []),
  ];
}

function urlOf(peer: PublishedPeer, { baseUrl }: CardContext): string {
  return `${baseUrl}/agents/${peer.slug}`;
}

function descriptionOf(peer: PublishedPeer): string {
  const given = peer.override?.description ?? peer.description ?? '';
  return given.trim() === '' ? `${peer.name} answers requests through this gateway.` : given;
}

function skillsOf(peer: PublishedPeer): readonly object[] {
  if (peer.override?.skills) return peer.override.skills;
  return [
    {
      id: 'default',
      name: peer.override?.name ?? peer.name,
      description: descriptionOf(peer),
      tags: ['band', ...peer.tags],
    },
  ];
}

function schemeNames({ auth }: A2AOptions): string[] {
  return [...(auth.apiKeys.length > 0 ? ['apiKey', 'bearerKey'] : []), ...(auth.jwt.length > 0 ? ['jwt'] : [])];
}

function schemesV1({ auth }: A2AOptions): Record<string, unknown> {
  return {
    ...(auth.apiKeys.length > 0 && {
      apiKey: { apiKeySecurityScheme: { location: 'header', name: auth.apiKeyHeader } },
      bearerKey: { httpAuthSecurityScheme: { scheme: 'Bearer' } },
    }),
    ...(auth.jwt.length > 0 && { jwt: { httpAuthSecurityScheme: { scheme: 'Bearer', bearerFormat: 'JWT' } } }),
  };
}

function schemesV03({ auth }: A2AOptions): Record<string, unknown> {
  return {
    ...(auth.apiKeys.length > 0 && {
      apiKey: { type: 'apiKey', in: 'header', name: auth.apiKeyHeader },
      bearerKey: { type: 'http', scheme: 'bearer' },
    }),
    ...(auth.jwt.length > 0 && { jwt: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } }),
  };
}
