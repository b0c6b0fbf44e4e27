import type { ResolvedPath, Ruling, ToolAvailability, ToolDefinition, ToolRisk } from '../../agents/index.ts';
import type { Config } from '../../config/index.ts';
import { coversTool, forTool } from '../../conversation/index.ts';
import { foldPath, inTime } from '../../kernel/index.ts';
import { commandsIn, plainCommand } from './shell-command.ts';

/** `tools.policy` and `tools.risk` of the configuration, read for one agent and one tool. */

/** What is configured wins over what the tool says of itself. */
export function riskOf(config: Config, { name, risk }: ToolDefinition): ToolRisk {
  return forTool(config.tools.risk, name) ?? risk;
}

export function standingOf(config: Config, agent: string, tool: ToolDefinition): ToolAvailability {
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

/** `unknown`: a pattern was cut off. `hidden`: the command may contain others that cannot be seen. */
type Fit = 'yes' | 'no' | 'unknown' | 'hidden';

/**
 * What becomes of a call with these arguments: the first rule that fits decides. `place`: where its path leads.
 *
 * POLICY-1  Where it is not known whether a rule fits, nothing is released; a rule that forbids and whose pattern is cut
 *           off forbids as if it fitted.
 * POLICY-2  A rule that allows fits a path if it fits what is written and where that leads; one that forbids if it fits
 *           either. What differs from a forbidden path in case or in Unicode form only is forbidden too.
 * POLICY-3  A call that writes to a protected path is released only by a rule whose pattern names that path.
 * POLICY-4  Of an argument that is no text (a list, a number), a rule that forbids is compared with each value in it and
 *           with the whole as JSON. A rule that allows fits texts alone.
 */
export function rulingOn(standing: ToolAvailability, given: Arguments, place?: ResolvedPath): Ruling {
  let isSure = true;
  const rule = standing.rules.find((tried) => {
    const fit = fitOf(tried, given, standing, place);
    if (fit === 'unknown' || fit === 'hidden') isSure = false;
    return fit === 'yes' || (fit === 'unknown' && tried.ruling === 'forbidden');
  });
  const ruling = rule?.ruling ?? standing.otherwise;
  if (ruling !== 'runs') return ruling;
  return isSure && !isGuarded(standing, rule, place) ? 'runs' : 'asks';
}

/** POLICY-3 */
function isGuarded(
  { subject }: ToolAvailability,
  rule: Rule | undefined,
  place: ResolvedPath | undefined,
): boolean {
  if (subject?.kind !== 'path' || !subject.writes || !place) return false;
  const named = (rule?.match[subject.argument] ?? '').replaceAll('\\', '').replace(/\$$/, '').split('/');
  return place.protectedBy.some((name) => !named.includes(name));
}

/** For all patterns of one rule, in milliseconds: much more than any that was meant to end takes. */
const MATCH_MS = 250;

function fitOf(
  rule: Rule,
  given: Arguments,
  standing: ToolAvailability,
  place: ResolvedPath | undefined,
): Fit {
  try {
    return inTime(() => {
      const fits = Object.entries(rule.match).map(([key, pattern]): Fit => {
        const kind = standing.subject?.argument === key ? standing.subject.kind : null;
        const byDefault = kind === 'path' ? place?.path : undefined;
        const value = Object.hasOwn(given, key) ? given[key] : byDefault;
        if (typeof value !== 'string') return fitOfNoText(rule.ruling, pattern, value);
        if (kind === 'path') return fitOfPath(rule.ruling, pattern, value, place?.path ?? value);
        if (kind === 'command') return fitOfCommand(rule.ruling, pattern, value);
        return new RegExp(pattern, 'u').test(value) ? 'yes' : 'no';
      });
      return fits.find((fit) => fit === 'no') ?? fits.find((fit) => fit === 'hidden') ?? 'yes';
    }, MATCH_MS);
  } catch {
    return 'unknown'; // a pattern that was cut off, or ran out of stack
  }
}

/** POLICY-4 */
function fitOfNoText(ruling: Ruling, pattern: string, value: unknown): Fit {
  if (ruling !== 'forbidden' || value === undefined) return 'no';
  const exact = new RegExp(pattern, 'u');
  return [JSON.stringify(value), ...valuesIn(value)].some((text) => exact.test(text)) ? 'yes' : 'no';
}

function valuesIn(value: unknown): string[] {
  const isLeaf = value === null || typeof value !== 'object';
  return isLeaf ? [String(value)] : Object.values(value).flatMap(valuesIn);
}

/** POLICY-2. A folder is tried with a slash after it as well. */
function fitOfPath(ruling: Ruling, pattern: string, written: string, led: string): Fit {
  const exact = new RegExp(pattern, 'u');
  const folded = new RegExp(pattern.normalize('NFC'), 'iu');
  const leads = [led, `${led}/`];
  if (ruling === 'runs') {
    // Folded too, for what the pattern leaves out: `(?!secret/)`.
    const isFit =
      exact.test(written) && leads.some((path) => exact.test(path) && folded.test(foldPath(path)));
    return isFit ? 'yes' : 'no';
  }
  const paths = [written, `${written}/`, ...leads];
  return paths.some((path) => exact.test(path) || folded.test(foldPath(path))) ? 'yes' : 'no';
}

function fitOfCommand(ruling: Ruling, pattern: string, text: string): Fit {
  const exact = new RegExp(pattern, 'u');
  if (ruling === 'runs') {
    const plain = plainCommand(text);
    return plain !== null && exact.test(plain) ? 'yes' : 'no';
  }
  const { commands, isAll } = commandsIn(text);
  if ([text, ...commands].some((command) => exact.test(command))) return 'yes';
  return isAll ? 'no' : 'hidden';
}
