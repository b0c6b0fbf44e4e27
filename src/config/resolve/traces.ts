import { type Environment, variable } from '../problems/environment.ts';
import { type Problems, show } from '../problems/problems.ts';
import type { TracesConfig } from '../schema/config.ts';
import type { TelemetryFile } from '../schema/schema.ts';
import { Secret } from '../schema/secret.ts';

/** The path of traces below an endpoint. */
const PATH = '/v1/traces';
const WHOLE = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
const BASE = 'OTEL_EXPORTER_OTLP_ENDPOINT';

/** Where traces are sent: the standard variables of OpenTelemetry, then `telemetry`. Null: nowhere. */
export function resolveTraces(
  { otlp: { endpoint, headers }, content }: TelemetryFile,
  env: Environment,
  problems: Problems,
): TracesConfig | null {
  if (variable(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return null;
  const base = address(env, BASE, problems) ?? endpoint;
  const url = address(env, WHOLE, problems) ?? (base === null ? null : `${base.replace(/\/+$/, '')}${PATH}`);
  if (url === null) return null;
  return {
    url,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, new Secret(value)])),
    service: variable(env, 'OTEL_SERVICE_NAME') ?? 'parleyd',
    content,
  };
}

function address(env: Environment, name: string, problems: Problems): string | null {
  const text = variable(env, name);
  if (text === undefined || (/^https?:\/\//.test(text) && URL.canParse(text))) return text ?? null;
  const expected = 'a URL that begins with http:// or https://';
  problems.add({ source: `environment ${name}`, seen: show(text), expected });
  return null;
}
