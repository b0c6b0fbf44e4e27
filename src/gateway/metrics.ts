import type { Application, RouteContext } from './context.ts';
import type { Measurements } from './port.ts';

/** `/metrics` in the text format of Prometheus, version 0.0.4. */
export function addMetricsDoor(app: Application, doors: RouteContext): void {
  app.get('/metrics', async (context) => {
    const text = exposition(await doors.door().measure());
    return context.body(text, 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
  });
}

export function exposition(measurements: Measurements): string {
  const lines = measurements.flatMap(({ name, help, type, samples }) => [
    `# HELP ${name} ${escaped(help)}`,
    `# TYPE ${name} ${type}`,
    ...samples.map(({ labels, value }) => `${name}${labelled(labels)} ${value}`),
  ]);
  return `${lines.join('\n')}\n`;
}

function labelled(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${escaped(value).replaceAll('"', '\\"')}"`,
  );
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
