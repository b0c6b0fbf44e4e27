import { type spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { CLUSTER_SERVER, prepareDeployed } from '../support/cluster.ts';
import { sharedFolder } from '../support/lifetime.ts';
import { openProject, type Project, type RunningDaemon } from '../support/project.ts';

/** The files of `deploy/`, used as far as this is possible without a container engine. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (name: string) => readFile(join(ROOT, 'deploy', name), 'utf8');

interface Service {
  readonly environment: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
}

async function service(file: string, name: string): Promise<Service> {
  return parse(await read(file), { merge: true }).services[name];
}

/** The environment of a service on this machine: variables of the caller are set, host names are replaced. */
function environmentOf({ environment }: Service, replaced: Readonly<Record<string, string>>) {
  const set = Object.entries(environment).map(([name, value]) => {
    const plain = value.replace(/^\$\{\w+:\?.*\}$/, 'a-token-of-24-characters').replace(/^\$\{\w+:-\}$/, '');
    return [name, replaced[name] ?? plain];
  });
  return Object.fromEntries(set.filter(([, value]) => value !== ''));
}

const instruction = (dockerfile: string, name: string) =>
  JSON.parse(new RegExp(`^${name} (\\[.*\\])$`, 'm').exec(dockerfile.replaceAll('\\\n ', ''))?.[1] ?? 'null');

describe('the image', () => {
  it('is built from files that exist and that the build context contains', async () => {
    const context = (await readFile(join(ROOT, '.dockerignore'), 'utf8')).split('\n');
    const copied = [...(await read('Dockerfile')).matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(
      ([, names]) => (names ?? '').split(' '),
    );
    expect(copied.length).toBeGreaterThan(5);
    for (const name of copied) {
      expect(existsSync(join(ROOT, name)), name).toBe(true);
      expect(context, name).toContain(`!${name.replace(/\/$/, '')}`);
    }
  });

  it('the image of a project and its service differ from those of Parley only in their files', async () => {
    const project = async (name: string) => readFile(join(ROOT, 'templates/common', name), 'utf8');
    const rights = (dockerfile: string) =>
      dockerfile.slice(dockerfile.indexOf('USER ')).replace(/PARLEY_CONFIG=\S+/, '');
    expect(rights(await project('Dockerfile'))).toBe(rights(await read('Dockerfile')));
    const { build, volumes, ...own } = parse(await project('compose.yaml')).services.parley;
    const {
      build: _build,
      volumes: _volumes,
      ...ofParley
    } = (await service('compose.yaml', 'parley')) as object as Record<string, unknown>;
    expect({ build, volumes }).toEqual({ build: '.', volumes: ['data:/data'] });
    expect(own).toEqual(ofParley);
  });

  it('runs a daemon with the command of the image and the environment of compose.yaml, and its health check follows it', async () => {
    const dockerfile = await read('Dockerfile');
    const [command, ...args] = instruction(dockerfile, 'CMD');
    expect(command).toBe('up');
    const env = environmentOf(await service('compose.yaml', 'parley'), {});
    const project = await openProject({ env });
    try {
      const daemon = await project.up(...args, '--http', '127.0.0.1:0');
      const [program, ...rest] = instruction(dockerfile, 'HEALTHCHECK .*CMD');
      const check = () =>
        spawnSync(
          program,
          rest.map((one: string) => one.replace('http://127.0.0.1:7420', daemon.ready.http ?? '')),
        ).status;
      expect(check()).toBe(0);
      expect((await project.parley('say', 'demo', 'Hello', '--wait')).code).toBe(0);
      expect(await daemon.stop()).toBe(0);
      expect(check()).toBe(1);
    } finally {
      await project.close();
    }
  });
});

describe.skipIf(CLUSTER_SERVER === null)('compose.cluster.yaml', () => {
  const folder = sharedFolder();
  let ports: readonly number[] = [];
  const servers: ReturnType<typeof spawn>[] = [];

  beforeAll(async () => {
    const cluster = await prepareDeployed(folder);
    ports = cluster.ports;
    for (const at of ports.keys()) servers.push(await cluster.start(CLUSTER_SERVER ?? '', at));
  }, 60_000);

  afterAll(async () => {
    for (const server of servers) {
      if (server.exitCode !== null || server.signalCode !== null) continue;
      server.kill('SIGTERM');
      await once(server, 'exit');
    }
  });

  it('runs three daemons on three servers, and a message is answered after one of each was killed', async () => {
    const url = ports
      .slice(0, 3)
      .map((port) => `nats://127.0.0.1:${port}`)
      .join(',');
    const key = (user: string) => join(folder, 'secrets', `${user}.nk`);
    const settings = await service('compose.cluster.yaml', 'parley-1');
    const env = environmentOf(settings, { PARLEY_NATS: url, PARLEY_NATS_NKEY: key('daemon') });
    const projects = await Promise.all(['1', '2', '3'].map(() => openProject({ env })));
    const [first] = projects;
    const operator = [
      '--nats',
      url,
      '--nats-nkey',
      key('operator'),
      '--nats-inbox-prefix',
      '_INBOX.operator',
    ];
    const say = async (words: string, ...more: string[]) =>
      await first?.parley('say', 'demo', words, '--wait', '--publisher', 'operator', ...operator, ...more);
    try {
      // `restart: unless-stopped`: on a slow machine an election takes longer than a start waits for it (REPLICAS-4).
      const up = async (project: Project, starts = 3): Promise<RunningDaemon> =>
        project.up(...(settings.command ?? []).slice(1)).catch((error) => {
          if (starts === 1 || !String(error).includes('STORE_UNAVAILABLE')) throw error;
          return up(project, starts - 1);
        });
      const daemons = await Promise.all(projects.map((project) => up(project)));
      expect(await say('Hello')).toMatchObject({ code: 0 });
      await daemons[0]?.kill9();
      servers[2]?.kill('SIGKILL');
      // Until a new leader is elected, a post may be refused; the same id is never answered twice.
      await expect
        .poll(() => say('Hello again', '--id', 'again'), { timeout: 90_000 })
        .toMatchObject({ code: 0 });
    } finally {
      await Promise.all(projects.map((project) => project.close()));
    }
  });
});

describe('the systemd unit and the Kubernetes manifests', () => {
  it('start the daemon with options that `parley up` has', async () => {
    const reference = await readFile(join(ROOT, 'docs/reference/cli.md'), 'utf8');
    const unit = /^ExecStart=(.*)$/m.exec(await read('systemd/parley.service'))?.[1]?.split(' ') ?? [];
    const [, set] = parseAllDocuments(await read('kubernetes/parley.yaml')).map((one) => one.toJSON());
    const { args } = set.spec.template.spec.containers[0];
    const options = [...unit, ...args].filter((word: string) => word.startsWith('--'));
    expect(options.length).toBeGreaterThan(3);
    for (const option of options) expect(reference).toMatch(new RegExp(`\`${option}[ \`]`));
  });

  it('the unit has no error that systemd-analyze reports', async (context) => {
    const checked = spawnSync('systemd-analyze', [
      'verify',
      '--man=no',
      join(ROOT, 'deploy/systemd/parley.service'),
    ]);
    if (checked.error) return context.skip();
    const others = /^(?!.*(?:not executable|No such file)).*parley\.service.*$/gm;
    expect(checked.stderr.toString().match(others) ?? []).toEqual([]);
  });

  it('the pod runs without root, with a read-only root and probes that the daemon answers', async () => {
    const [service, set] = parseAllDocuments(await read('kubernetes/parley.yaml')).map((one) => one.toJSON());
    const { spec } = set.spec.template;
    const [container] = spec.containers;
    expect(service.spec.selector).toEqual(set.spec.template.metadata.labels);
    expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10001, fsGroup: 10001 });
    expect(container.securityContext).toMatchObject({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
    });
    const mounted = container.volumeMounts.map((mount: { name: string }) => mount.name).sort();
    const volumes = [
      ...spec.volumes,
      ...set.spec.volumeClaimTemplates.map((claim: { metadata: object }) => claim.metadata),
    ];
    expect(mounted).toEqual(volumes.map((volume: { name: string }) => volume.name).sort());
    const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
    expect(probes.map((probe) => probe.httpGet.path)).toEqual(['/readyz', '/healthz', '/readyz']);
  });
});
