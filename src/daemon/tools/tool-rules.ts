import { createHash } from 'node:crypto';
import {
  isForbidden,
  type ResolvedPath,
  type Subject,
  type Toolbox,
  type ToolDefinition,
  type ToolRun,
} from '../../agents/index.ts';
import type { Config } from '../../config/index.ts';
import {
  expandTools,
  isConversationTool,
  type Judgement,
  listsTool,
  PERMIT,
  type ToolCallRequest,
  type ToolRules,
} from '../../conversation/index.ts';
import { inOneLine, type JsonRecord, readArguments } from '../../kernel/index.ts';
import {
  CheckBudget,
  draftFault,
  shapeFault,
  type ValueCheck,
  valueCheck,
} from '../../kernel/json-schema.ts';
import { hasReplacedArguments } from './large.ts';
import { availabilityOf, riskOf, rulingOn } from './tool-policy.ts';
/**
 * Decides which tool calls run without an approval. The first matching rule of the policy decides; without one a safe call
 * runs and a risky one needs an approval. A tool that the policy forbids an agent entirely is not available to it.
 */

export function toolRules(config: Config, toolbox: Toolbox): ToolRules {
  return {
    judge: (request) => judge(request, config, toolbox),
    has: (name) => toolbox.definitions().has(name),
    schemaFault: (parameters) => shapeFault(parameters) ?? draftFault(parameters),
    argumentsFault: argumentsOfCallers(),
    fingerprint: (text) => createHash('sha256').update(text).digest('hex'),
  };
}

/** Compiled at the first call. A schema for which no time is left is not checked: the caller's own program reads the arguments. */
function argumentsOfCallers(): ToolRules['argumentsFault'] {
  const budget = new CheckBudget(() => performance.now());
  const checks = new WeakMap<JsonRecord, ValueCheck>();
  return (name, parameters, given) => {
    const check = checks.get(parameters) ?? valueCheck(parameters, budget, name);
    checks.set(parameters, check);
    return check(given) ?? null;
  };
}

function judge(request: ToolCallRequest, config: Config, toolbox: Toolbox): Judgement {
  const { agent, name, available } = request;
  const definitions = toolbox.definitions();
  const definition = definitions.get(name);
  const availability = definition && availabilityOf(config, agent, definition);
  if (!definition || !availability || isForbidden(availability) || !listsTool(available, name)) {
    const usable = expandTools(available, definitions.keys()).filter((one) => {
      const other = definitions.get(one);
      return other ? !isForbidden(availabilityOf(config, agent, other)) : isConversationTool(one);
    });
    const why = `you have no tool ${name}; you have ${usable.join(', ') || 'none'}`;
    return refuse('TOOL_NOT_AVAILABLE', why);
  }
  const parsed = readArguments(request.arguments);
  if (!parsed.ok)
    return refuse('INVALID_ARGUMENTS', `the arguments of ${name} are not a JSON object: ${parsed.why}`);
  if (hasReplacedArguments(parsed.value)) {
    return refuse(
      'ARGUMENTS_TOO_LARGE',
      `the arguments of ${name} were too large, so it was not run: do it in smaller steps`,
    );
  }
  const wrong = toolbox.check(name, parsed.value);
  if (wrong) return refuse('INVALID_ARGUMENTS', wrong);
  const located = toolbox.locate?.(name, parsed.value) ?? null;
  if (located?.kind === 'refused') return refuse(located.code, located.message);
  switch (rulingOn(availability, parsed.value, located?.place)) {
    case 'runs':
      return { kind: 'run', risk: riskOf(config, definition) };
    case 'asks':
      if (located?.place.isLinked) return refuse('PATH_REFUSED', linked(located.place));
      return {
        ...{ kind: 'ask', risk: 'risky', ...reasonToAsk(definition, located?.place) },
        ...coveredWith(definition, parsed.value),
      };
    case 'forbidden':
      return refuse('FORBIDDEN', `the policy forbids this call of ${name}`);
  }
}

function reasonToAsk(
  { name, unaccepted, subject }: ToolDefinition,
  place: ResolvedPath | undefined,
): { why: string; accepts?: string } {
  if (unaccepted) {
    const what = unaccepted.is === 'new' ? 'was added by its server' : 'was changed by its server';
    const why = `${name} ${what} since its tools were accepted; who approves the call accepts the tool as it is now`;
    return { why, accepts: unaccepted.digest };
  }
  if (!place || place.protectedBy.length === 0)
    return { why: `${name} may change something outside this conversation` };
  const shown = inOneLine(place.path);
  if (subject?.kind === 'path' && !subject.writes)
    return { why: `${name} would read ${shown}, which may hold secrets` };
  return { why: `${name} would change ${shown}, a protected path` };
}

/** GRANTS-1: calls with the same command or path; of a tool with neither, all of its calls. */
function coveredWith(
  { name, subject, unaccepted }: ToolDefinition,
  given: Readonly<Record<string, unknown>>,
): { covers?: string } {
  if (unaccepted || name === PERMIT.other) return {};
  const about = subject?.argument ?? (name === PERMIT.edit ? 'path' : null);
  if (about === null) return { covers: `all calls of ${name}` };
  const value = given[about];
  return typeof value === 'string'
    ? { covers: `calls of ${name} with ${about} ${JSON.stringify(value)}` }
    : {};
}

/** A person approves only a path named in the call: a link could be changed before the call runs. */
function linked({ path }: ResolvedPath): string {
  return `a link leads from there to ${inOneLine(path)}, which needs a person's approval: name that path`;
}

/**
 * The toolbox under the policy: each path that a call opens is judged again after it is resolved, so that a link changed
 * after the ruling gives no access. A file found by a search is refused if a rule forbids it, or if it may hold secrets and the
 * call does not name what makes it one.
 */
export function underPolicy(config: Config, toolbox: Toolbox): Toolbox {
  const permits = (
    { agent, policyAgent = agent, name, arguments: given, isApproved }: ToolRun,
    place: ResolvedPath,
  ): boolean => {
    const definition = toolbox.definitions().get(name);
    if (!definition) return false;
    const availability = availabilityOf(config, policyAgent, definition);
    const at =
      place.isBelow && availability.subject
        ? { ...given, [availability.subject.argument]: place.path }
        : given;
    const ruling = rulingOn(availability, at, place);
    if (ruling !== 'asks') return ruling === 'runs';
    const named = isApproved === true ? componentsIn(given, availability.subject) : [];
    if (place.isBelow) return place.protectedBy.every((name) => named.includes(name));
    return isApproved === true && !place.isLinked;
  };
  const run: Toolbox['run'] = (call, signal) =>
    toolbox.run({ ...call, permits: (place) => permits(call, place) }, signal);
  return { ...toolbox, run };
}

function componentsIn(given: ToolRun['arguments'], subject: Subject | undefined): string[] {
  const path = subject && given[subject.argument];
  return typeof path === 'string' ? path.split('/') : [];
}

function refuse(code: string, message: string): Judgement {
  return { kind: 'refuse', code, message };
}
