import { type Environment, variable } from '../problems/environment.ts';
import { Problems, show } from '../problems/problems.ts';
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
  const url = urlFrom(address(env, WHOLE, problems), address(env, BASE, problems) ?? endpoint);
  if (url === null) return null;
  return {
    url,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, new Secret(value)])),
    service: variable(env, 'OTEL_SERVICE_NAME') ?? 'parleyd',
    content,
  };
}

/** Where a command sends traces: `endpoint`, else the standard variables. Null: nowhere. */
export function tracesUrl(env: Environment, endpoint: string | undefined): string | null {
  const problems = new Problems();
  const url =
    endpoint === undefined
      ? urlFrom(address(env, WHOLE, problems), address(env, BASE, problems))
      : urlFrom(null, checked(endpoint, '--endpoint', problems));
  problems.throwIfAny();
  return url;
}

function urlFrom(whole: string | null, base: string | null): string | null {
  return whole ?? (base === null ? null : `${base.replace(/\/+$/, '')}${PATH}`);
}

function address(env: Environment, name: string, problems: Problems): string | null {
  const text = variable(env, name);
  return text === undefined ? null : checked(text, `environment ${name}`, problems);
}

function checked(text: string, source: string, problems: Problems): string | null {
  if (/^https?:\/\//.test(text) && URL.canParse(text)) return text;
  const expected = 'a URL that begins with http:// or https://';
  problems.add({ source, seen: show(text), expected });
  return null;
}
