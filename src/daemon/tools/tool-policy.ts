import type { ResolvedPath, Risk, Ruling, ToolAvailability, ToolDefinition } from '../../agents/index.ts';
import type { Config } from '../../config/index.ts';
import { commandsIn, coversTool, forTool, hashInPath, plainCommand } from '../../conversation/index.ts';
import { foldPath, type LinearPattern, linearPattern } from '../../kernel/index.ts';
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
  const known = compiled.get(key);
  if (known) return known;
  if (compiled.size >= MAX_COMPILED) compiled.clear();
  const pattern = linearPattern(source, { ignoreCase: flags === 'i' });
  compiled.set(key, pattern);
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
