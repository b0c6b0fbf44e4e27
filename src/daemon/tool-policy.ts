import type { Ruling, ToolDefinition, ToolRisk, ToolStanding } from '../agents/index.ts';
import type { Config } from '../config/index.ts';

/** `tools.policy` and `tools.risk` of the configuration, read for one agent and one tool. */

/** What is configured wins over what the tool says of itself. */
export function riskOf(config: Config, { name, risk }: ToolDefinition): ToolRisk {
  return (Object.hasOwn(config.tools.risk, name) ? config.tools.risk[name] : undefined) ?? risk;
}

export function standingOf(config: Config, agent: string, tool: ToolDefinition): ToolStanding {
  const rules: { match: Readonly<Record<string, string>>; ruling: Ruling }[] = [];
  for (const rule of config.tools.policy) {
    if (rule.tool !== tool.name || (rule.agent ?? agent) !== agent) continue;
    const ruling = rule.allow ? 'runs' : 'forbidden';
    const { match = {} } = rule;
    if (Object.keys(match).length === 0) return { rules, otherwise: ruling };
    rules.push({ match, ruling });
  }
  return { rules, otherwise: riskOf(config, tool) === 'safe' ? 'runs' : 'asks' };
}

/** What becomes of a call with these arguments: the first rule that fits decides. */
export function rulingOn(standing: ToolStanding, given: Readonly<Record<string, unknown>>): Ruling {
  const rule = standing.rules.find(({ match }) =>
    Object.entries(match).every(([key, pattern]) => {
      const value = Object.hasOwn(given, key) ? given[key] : undefined;
      return typeof value === 'string' && new RegExp(pattern, 'u').test(value);
    }),
  );
  return rule?.ruling ?? standing.otherwise;
}
