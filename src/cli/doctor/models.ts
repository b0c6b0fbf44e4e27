import type { Config, ModelConfig } from '../../config/index.ts';
import type { Check } from './check.ts';

/** Each model that is configured: where it is, and whether it has what it needs. Calls none of them. */
export function modelChecks(config: Config): Check[] {
  return Object.entries(config.models).map(([name, model]) => modelCheck(`model ${name}`, model));
}

const LOCAL = /^https?:\/\/(localhost|127\.|\[::1\])/;

function modelCheck(name: string, model: ModelConfig): Check {
  if (model.provider === 'scripted') {
    return {
      name,
      status: 'warn',
      message: `offline: answers come from ${model.script ?? 'a script that Parley ships'}, not from a model`,
      fix: 'set OPENAI_API_KEY, or name a model in parley.yaml',
    };
  }
  const where = `${model.model} at ${model.baseURL}`;
  const profile = profileText(model);
  if (model.apiKey !== null) return { name, status: 'ok', message: `${where}, with a key${profile}` };
  if (LOCAL.test(model.baseURL)) {
    return { name, status: 'ok', message: `${where}, without a key${profile}` };
  }
  return {
    name,
    status: 'warn',
    message: `${where}, without a key${profile}`,
    fix: 'set its apiKey in parley.yaml if that endpoint wants one',
  };
}

/** Nothing for the default: nobody chose it. */
function profileText({ profile }: ModelConfig): string {
  if (profile.chosenBy === 'default') return '';
  return `; profile ${profile.preset}${profile.chosenBy === 'host' ? ', by its host' : ''}`;
}
