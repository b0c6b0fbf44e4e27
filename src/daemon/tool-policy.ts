import type { Ruling, ToolDefinition, ToolRisk, ToolStanding } from '../agents/index.ts';
import type { Config } from '../config/index.ts';
import { coversTool, forTool } from '../conversation/index.ts';
import { inTime } from '../kernel/index.ts';

/** `tools.policy` and `tools.risk` of the configuration, read for one agent and one tool. */

/** What is configured wins over what the tool says of itself. */
export function riskOf(config: Config, { name, risk }: ToolDefinition): ToolRisk {
  return forTool(config.tools.risk, name) ?? risk;
}

export function standingOf(config: Config, agent: string, tool: ToolDefinition): ToolStanding {
  const rules: { match: Readonly<Record<string, string>>; ruling: Ruling }[] = [];
  for (const rule of config.tools.policy) {
    if (!coversTool(rule.tool, tool.name) || (rule.agent ?? agent) !== agent) continue;
    const ruling = rule.allow ? 'runs' : 'forbidden';
    const { match = {} } = rule;
    if (Object.keys(match).length === 0) return { rules, otherwise: ruling };
    rules.push({ match, ruling });
  }
  return { rules, otherwise: riskOf(config, tool) === 'safe' ? 'runs' : 'asks' };
}

/**
 * What becomes of a call with these arguments: the first rule that fits decides. Where a pattern cannot be tried to its end
 * in time, nobody knows whether its rule fits: then it forbids as if it did, and releases nothing.
 */
export function rulingOn(standing: ToolStanding, given: Readonly<Record<string, unknown>>): Ruling {
  let isSure = true;
  const rule = standing.rules.find(({ match, ruling }) => {
    const isFit = fits(match, given);
    if (isFit === 'unknown') isSure = false;
    return isFit === true || (isFit === 'unknown' && ruling === 'forbidden');
  });
  const ruling = rule?.ruling ?? standing.otherwise;
  return ruling === 'runs' && !isSure ? 'asks' : ruling;
}

/** For all patterns of one rule, in milliseconds: much more than any that was meant to end takes. */
const MATCH_MS = 250;

function fits(
  match: Readonly<Record<string, string>>,
  given: Readonly<Record<string, unknown>>,
): boolean | 'unknown' {
  const pairs = Object.entries(match).map(([key, pattern]) => ({
    pattern: new RegExp(pattern, 'u'),
    value: Object.hasOwn(given, key) ? given[key] : undefined,
  }));
  try {
    return inTime(
      () => pairs.every(({ pattern, value }) => typeof value === 'string' && pattern.test(value)),
      MATCH_MS,
    );
  } catch {
    return 'unknown'; // a pattern that was cut off, or ran out of stack
  }
}
