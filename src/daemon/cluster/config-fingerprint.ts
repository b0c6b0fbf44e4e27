import { createHash } from 'node:crypto';
import type { Config } from '../../config/index.ts';
/**
 * One hash for each part of the configuration that must be equal in all daemons that share the work. It covers nothing
 * that belongs to one machine (paths, addresses, keys).
 */
export type ConfigFingerprint = Readonly<Record<string, string>>;

export function fingerprintOf(config: Config): ConfigFingerprint {
  const { agents, models, phases, workflows, prompts, tools } = config;
  const { limits, approvals, publishers, ingress, sharing } = config;
  return {
    agents: digest([config.defaultAgent, ...agents.map(({ file: _, ...agent }) => agent)]),
    models: digest(
      Object.entries(models).map(([name, { provider, model, parameters }]) => [
        name,
        provider,
        model,
        parameters,
      ]),
    ),
    phases: digest(phases),
    workflows: digest(workflows),
    prompts: digest(prompts),
    tools: digest([Object.keys(tools.mcpServers).sort(), tools.filesDigest, tools.risk, tools.policy]),
    limits: digest([limits, approvals, publishers, ingress, sharing]),
  };
}

/** The parts that differ; none if `other` is no fingerprint (an older daemon sends none). */
export function differencesOf(own: ConfigFingerprint, other: unknown): string[] {
  if (typeof other !== 'object' || other === null) return [];
  return Object.keys(own).filter((part) => Reflect.get(other, part) !== own[part]);
}

function digest(part: unknown): string {
  return createHash('sha256').update(JSON.stringify(part)).digest('hex').slice(0, 12);
}
