import type { KeyPath, Problems } from '../problems/problems.ts';
import type { AgentConfig, ModelConfig, RequestParameters } from '../schema/config.ts';
import { type ParameterKeys, parameterKeys, sessionClashes } from '../schema/parameters.ts';
import { Secret } from '../schema/secret.ts';

/** The given parameters, names of headers in lower case, values of headers hidden (PARAMETERS-2). */
export function resolveParameters(given: ParameterKeys): RequestParameters {
  const names = Object.keys(parameterKeys) as (keyof ParameterKeys)[];
  const own = names.filter((name) => given[name] !== undefined).map((name) => [name, given[name]]);
  const { headers, ...others }: ParameterKeys = Object.fromEntries(own);
  if (headers === undefined) return others;
  const hidden = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), new Secret(value)]);
  return { ...others, headers: Object.fromEntries(hidden) };
}

/** An agent, and where the keys of its file are. */
interface LocatedAgent {
  readonly config: AgentConfig;
  locate(path: KeyPath): string;
  isReported(path: KeyPath): boolean;
}

/** What an agent's parameters must not be, given its model. */
export function checkAgentParameters(
  { config, locate, isReported }: LocatedAgent,
  model: ModelConfig | undefined,
  problems: Problems,
): void {
  const { parameters } = config;
  const refuse = (below: KeyPath, seen: string, expected: string, hint?: string) => {
    const path = ['parameters', ...below];
    if (isReported(path)) return;
    problems.add({ source: locate(path), key: path, seen, expected, ...(hint ? { hint } : {}) });
  };
  if (config.runtime === 'bus') {
    for (const key of Object.keys(parameters).filter((one) => one !== 'maxOutputTokens')) {
      const hint = 'remove it: the program of the agent makes its own requests';
      refuse([key], 'a value', 'none for an agent with runtime: bus', hint);
    }
  }
  if (!model) return;
  const { maxOutputTokens: longest } = parameters;
  if (longest !== undefined && longest >= model.contextTokens) {
    const expected = `less than contextTokens of the model ${config.model} (${model.contextTokens})`;
    refuse(['maxOutputTokens'], String(longest), expected);
  }
  const session = model.session ? { [model.session.kind]: model.session.name } : {};
  for (const path of sessionClashes(parameters, session)) {
    refuse(path, 'the name that the model uses for its session', 'another name');
  }
}
