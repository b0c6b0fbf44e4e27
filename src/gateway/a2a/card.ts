import { A2A_PROTOCOL_VERSION, type AgentCard } from '@a2a-js/sdk';
import { duplicateInterfacesForLegacy } from '@a2a-js/sdk/compat/v0_3';

/** What another agent may know of one of ours. */

export interface Described {
  readonly slug: string;
  readonly name: string;
  readonly description: string;
}

export function cardOf(agent: Described, url: string, version: string, needsToken: boolean): AgentCard {
  const { slug, name, description } = agent;
  const said = description || `${name}, an agent of this team`;
  const own = { url, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: A2A_PROTOCOL_VERSION };
  return {
    name,
    description: said,
    supportedInterfaces: duplicateInterfacesForLegacy([own], ['JSONRPC']),
    provider: undefined,
    version,
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: needsToken ? { token: BEARER } : {},
    securityRequirements: needsToken ? [{ schemes: { token: { list: [] } } }] : [],
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: ['text/plain'],
    skills: [
      {
        id: slug,
        name,
        description: said,
        tags: ['conversation'],
        examples: [],
        inputModes: [],
        outputModes: [],
        securityRequirements: [],
      },
    ],
    signatures: [],
  };
}

const BEARER = {
  scheme: {
    $case: 'httpAuthSecurityScheme' as const,
    value: { description: 'a token of this daemon', scheme: 'Bearer', bearerFormat: '' },
  },
};
