import { createHash } from 'node:crypto';
import type { Toolbox } from '../agents/index.ts';
import type { Config } from '../config/index.ts';
import type { Judgement, Risk, ToolCallRequest, ToolRules } from '../conversation/index.ts';
import { isKeptApart } from './large.ts';

/**
 * What may be run without asking: the toolbox knows a tool's risk, the configuration overrides it and has the policy.
 * The first rule of the policy that fits decides; without one a safe call is run and a risky one asked for.
 */

export function toolRules(config: Config, toolbox: Toolbox): ToolRules {
  return {
    judge: (request) => judge(request, config, toolbox),
    fingerprint: (text) => createHash('sha256').update(text).digest('hex'),
  };
}

function judge(request: ToolCallRequest, config: Config, toolbox: Toolbox): Judgement {
  const { name, available } = request;
  const definition = toolbox.definitions().get(name);
  if (!definition || !available.includes(name)) {
    return refuse(
      'TOOL_NOT_AVAILABLE',
      `you have no tool ${name}; you have ${available.join(', ') || 'none'}`,
    );
  }
  const parsed = parse(request.arguments);
  if (!parsed.ok)
    return refuse('INVALID_ARGUMENTS', `the arguments of ${name} are not a JSON object: ${parsed.why}`);
  if (isKeptApart(parsed.value)) {
    return refuse(
      'ARGUMENTS_TOO_LARGE',
      `the arguments of ${name} were too large, so it was not run: do it in smaller steps`,
    );
  }
  const wrong = toolbox.check(name, parsed.value);
  if (wrong) return refuse('INVALID_ARGUMENTS', wrong);
  const configured = Object.hasOwn(config.tools.risk, name) ? config.tools.risk[name] : undefined;
  const risk: Risk = configured ?? definition.risk;
  const rule = config.tools.policy.find((candidate) => fits(candidate, request, parsed.value));
  if (rule && !rule.allow) return refuse('FORBIDDEN', `the policy forbids this call of ${name}`);
  if (rule || risk === 'safe') return { kind: 'run', risk };
  return { kind: 'ask', risk: 'risky', why: `${name} may change something outside this conversation` };
}

function fits(
  rule: Config['tools']['policy'][number],
  request: ToolCallRequest,
  given: Readonly<Record<string, unknown>>,
): boolean {
  if (rule.agent !== undefined && rule.agent !== request.agent) return false;
  if (rule.tool !== request.name) return false;
  return Object.entries(rule.match ?? {}).every(([key, pattern]) => {
    const value = Object.hasOwn(given, key) ? given[key] : undefined;
    return typeof value === 'string' && new RegExp(pattern, 'u').test(value);
  });
}

type Parsed =
  | { readonly ok: true; readonly value: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly why: string };

/** The arguments of a call as an object; a model may leave them out. */
export function parse(text: string): Parsed {
  if (text.trim() === '') return { ok: true, value: {} };
  try {
    const value: unknown = JSON.parse(text);
    const isObject = value !== null && typeof value === 'object' && !Array.isArray(value);
    return isObject
      ? { ok: true, value: value as Record<string, unknown> }
      : { ok: false, why: 'not an object' };
  } catch (error) {
    return { ok: false, why: error instanceof Error ? error.message : 'not JSON' };
  }
}

function refuse(code: string, message: string): Judgement {
  return { kind: 'refuse', code, message };
}
