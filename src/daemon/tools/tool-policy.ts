import {
  isForbidden,
  type ResolvedPath,
  type Risk,
  type Ruling,
  type Subject,
  type ToolAvailability,
  type Toolbox,
  type ToolDefinition,
  type ToolRun,
} from '../../agents/index.ts';
import type { Config } from '../../config/index.ts';
import {
  commandsIn,
  coversTool,
  expandTools,
  forTool,
  hashInPath,
  isConversationTool,
  type Judgement,
  listsTool,
  PERMIT,
  plainCommand,
  type SchemaAuthor,
  type ToolCallRequest,
  type ToolRules,
} from '../../conversation/index.ts';
import {
  foldPath,
  inOneLine,
  isRecord,
  type JsonRecord,
  type LinearPattern,
  linearPattern,
  readArguments,
  remember,
  sha256Of,
} from '../../kernel/index.ts';
import {
  CheckBudget,
  draftFault,
  shapeFault,
  type ValueCheck,
  valueCheck,
} from '../../kernel/json-schema.ts';
import { hasReplacedArguments } from './entry-content.ts';

/** Applies `tools.policy` and `tools.risk` of the configuration to one agent and one tool. */

/** The configured risk overrides the tool's own. */
export function riskOf(config: Config, { name, risk }: ToolDefinition): Risk {
  return forTool(config.tools.risk, name) ?? risk;
}

export function availabilityOf(config: Config, agent: string, tool: ToolDefinition): ToolAvailability {
  const rules: Rule[] = [];
  const subject = tool.subject ? { subject: tool.subject } : {};
  for (const rule of config.tools.policy) {
    if (!coversTool(rule.tool, tool.name) || (rule.agent ?? agent) !== agent) continue;
    const allowed = tool.unaccepted ? 'asks' : 'runs';
    const ruling = rule.allow ? allowed : 'forbidden';
    const { match = {} } = rule;
    if (Object.keys(match).length === 0) return { rules, otherwise: ruling, ...subject };
    rules.push({ match, ruling });
  }
  const isSafe = riskOf(config, tool) === 'safe' && !tool.unaccepted;
  return { rules, otherwise: isSafe ? 'runs' : 'asks', ...subject };
}

type Rule = ToolAvailability['rules'][number];
type Arguments = Readonly<Record<string, unknown>>;

/** `unknown`: the value cannot be read. `hidden`: the command may contain invisible ones. */
type Fit = 'yes' | 'no' | 'unknown' | 'hidden';

/**
 * The ruling on a call with these arguments: the first matching rule decides. `place`: the resolved path.
 *
 * POLICY-1  If a match is unknown, the call is not allowed. A forbid rule whose match is unknown counts as matching.
 * POLICY-2  An allow rule matches a path if it matches the path as written and as resolved; a forbid rule if it matches
 *           either. A path that differs from a forbidden one only in case or Unicode form is forbidden too.
 * POLICY-3  A call that writes to a protected path, or reads one that may hold secrets, is allowed only by a rule whose
 *           pattern names that path.
 * POLICY-4  A forbid rule is compared with each value of an argument that is not a text (a list, a number), and with the
 *           argument as JSON. An allow rule matches only texts.
 * POLICY-5  A file of a message (`@blob/…`) may be read by each agent that has the tool: the agent's conversation contains it.
 */
export function rulingOn(availability: ToolAvailability, given: Arguments, place?: ResolvedPath): Ruling {
  if (readsBlob(availability, given)) return 'runs';
  let isSure = true;
  const rule = availability.rules.find((tried) => {
    const fit = fitOf(tried, given, availability, place);
    if (fit === 'unknown' || fit === 'hidden') isSure = false;
    return fit === 'yes' || (fit === 'unknown' && tried.ruling === 'forbidden');
  });
  const ruling = rule?.ruling ?? availability.otherwise;
  if (ruling !== 'runs') return ruling;
  return isSure && !isGuarded(availability, rule, place) ? 'runs' : 'asks';
}

function readsBlob({ subject }: ToolAvailability, given: Arguments): boolean {
  const path = subject?.kind === 'path' && !subject.writes ? given[subject.argument] : undefined;
  return typeof path === 'string' && hashInPath(path) !== null;
}

function isGuarded(
  { subject }: ToolAvailability,
  rule: Rule | undefined,
  place: ResolvedPath | undefined,
): boolean {
  if (subject?.kind !== 'path' || !place) return false;
  const named = (rule?.match[subject.argument] ?? '').replaceAll('\\', '').replace(/\$$/, '').split('/');
  return place.protectedBy.some((name) => !named.includes(name));
}

/** Compiling takes longer than matching. The patterns are those of the configuration. */
const compiled = new Map<string, LinearPattern>();
const MAX_COMPILED = 1_000;

function patternOf(source: string, flags: '' | 'i' = ''): LinearPattern {
  const key = `${flags}/${source}`;
  const pattern = compiled.get(key) ?? linearPattern(source, { ignoreCase: flags === 'i' });
  remember(compiled, key, pattern, MAX_COMPILED);
  return pattern;
}

function fitOf(
  rule: Rule,
  given: Arguments,
  availability: ToolAvailability,
  place: ResolvedPath | undefined,
): Fit {
  try {
    const fits = Object.entries(rule.match).map(([key, pattern]): Fit => {
      const kind = availability.subject?.argument === key ? availability.subject.kind : null;
      const byDefault = kind === 'path' ? place?.path : undefined;
      const value = Object.hasOwn(given, key) ? given[key] : byDefault;
      if (typeof value !== 'string') return fitOfNoText(rule.ruling, pattern, value);
      if (kind === 'path') return fitOfPath(rule.ruling, pattern, value, place?.path ?? value);
      if (kind === 'command') return fitOfCommand(rule.ruling, pattern, value);
      return patternOf(pattern).test(value) ? 'yes' : 'no';
    });
    return fits.find((fit) => fit === 'no') ?? fits.find((fit) => fit === 'hidden') ?? 'yes';
  } catch {
    return 'unknown'; // out of stack
  }
}

function fitOfNoText(ruling: Ruling, pattern: string, value: unknown): Fit {
  if (ruling !== 'forbidden' || value === undefined) return 'no';
  const exact = patternOf(pattern);
  return [JSON.stringify(value), ...valuesIn(value)].some((text) => exact.test(text)) ? 'yes' : 'no';
}

function valuesIn(value: unknown): string[] {
  const isLeaf = value === null || typeof value !== 'object';
  return isLeaf ? [String(value)] : Object.values(value).flatMap(valuesIn);
}

/** POLICY-2. A folder is tried with a slash after it as well. */
function fitOfPath(ruling: Ruling, pattern: string, written: string, led: string): Fit {
  const exact = patternOf(pattern);
  const folded = patternOf(pattern.normalize('NFC'), 'i');
  const leads = [led, `${led}/`];
  if (ruling === 'runs') {
    // Folded too, for what the pattern leaves out: `[^.]`, `(?<!secret)`.
    const isFit =
      exact.test(written) && leads.some((path) => exact.test(path) && folded.test(foldPath(path)));
    return isFit ? 'yes' : 'no';
  }
  const paths = [written, `${written}/`, ...leads];
  return paths.some((path) => exact.test(path) || folded.test(foldPath(path))) ? 'yes' : 'no';
}

function fitOfCommand(ruling: Ruling, pattern: string, text: string): Fit {
  const exact = patternOf(pattern);
  if (ruling === 'runs') {
    const plain = plainCommand(text);
    return plain !== null && exact.test(plain) ? 'yes' : 'no';
  }
  const { commands, possible, isAll } = commandsIn(text);
  const isIn = (texts: readonly string[]) => texts.some((command) => exact.test(command));
  if (isIn([text, ...commands])) return 'yes';
  return isAll && !isIn(possible) ? 'no' : 'hidden';
}

/**
 * Decides which tool calls run without an approval. The first matching rule of the policy decides; without one a safe call
 * runs and a risky one needs an approval. A tool that the policy forbids an agent entirely is not available to it.
 */
export function toolRules(config: Config, toolbox: Toolbox): ToolRules {
  return {
    judge: (request) => judge(request, config, toolbox),
    has: (name) => toolbox.definitions().has(name),
    schemaFault: (parameters) => shapeFault(parameters) ?? draftFault(parameters),
    argumentsFault: argumentsFault(),
    fingerprint: sha256Of,
  };
}

/**
 * Compiled at the first call. A schema for which no time is left is not checked: the caller's own program reads the arguments.
 * One of a caller takes no time from those of servers and workflows.
 */
function argumentsFault(): NonNullable<ToolRules['argumentsFault']> {
  const budget = () => new CheckBudget(() => performance.now());
  const budgets: Record<SchemaAuthor, CheckBudget> = {
    caller: budget(),
    server: budget(),
    workflow: budget(),
  };
  const checks = new WeakMap<JsonRecord, ValueCheck>();
  return (name, schema, given, by) => {
    if (isRecord(given) && hasReplacedArguments(given)) return tooLarge(name);
    const check = checks.get(schema) ?? valueCheck(schema, budgets[by], name);
    checks.set(schema, check);
    return check(given) ?? null;
  };
}

const tooLarge = (name: string) =>
  `the arguments of ${name} were too large, so it was not run: do it in smaller steps`;

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
    return refuse('ARGUMENTS_TOO_LARGE', tooLarge(name));
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
        kind: 'ask',
        risk: 'risky',
        ...reasonToAsk(definition, located?.place),
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

/** GRANTS-1: calls with the same command, or path and kind of change; of a tool with neither, all of its calls. */
function coveredWith(
  { name, subject, unaccepted }: ToolDefinition,
  given: Readonly<Record<string, unknown>>,
): { covers?: string } {
  if (unaccepted || name === PERMIT.other) return {};
  const about = subject?.argument ?? (name === PERMIT.edit ? 'path' : null);
  if (about === null) return { covers: `all calls of ${name}` };
  const value = given[about];
  if (typeof value !== 'string') return {};
  const kind =
    name === PERMIT.edit && given.kind !== undefined ? ` and kind ${JSON.stringify(given.kind)}` : '';
  return { covers: `calls of ${name} with ${about} ${JSON.stringify(value)}${kind}` };
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
