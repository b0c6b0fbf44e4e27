import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Certificates for one test, created by `openssl`: two authorities, and certificates of the first of them. */
export interface TestCertificates {
  /** Path of a file in the directory: `ca.pem`, `other.pem`, `server.pem`, `server.key`, `client.pem`, `client.key`. */
  path(name: string): string;
}

export async function makeCertificates(directory: string): Promise<TestCertificates> {
  const path = (name: string) => join(directory, name);
  const make = (name: string, more: readonly string[]) =>
    promisify(execFile)('openssl', [
      'req',
      '-x509',
      '-nodes',
      '-days',
      '2',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      ...['-keyout', path(`${name}.key`), '-out', path(`${name}.pem`), '-subj', `/CN=${name}`, ...more],
    ]);
  await make('ca', []);
  await make('other', []);
  const signed = ['-CA', path('ca.pem'), '-CAkey', path('ca.key'), '-addext', 'basicConstraints=CA:FALSE'];
  await make('server', [...signed, '-addext', 'subjectAltName=IP:127.0.0.1']);
  await make('client', signed);
  return { path };
}
