import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A certificate authority with a key of its own; its files are in a folder that `remove` deletes. */
export class Authority {
  readonly folder = mkdtempSync(join(tmpdir(), 'leasehold-tls-'))
  readonly ca = join(this.folder, 'ca.pem')
  readonly #key = join(this.folder, 'ca-key.pem')

  constructor(name = 'test authority') {
    openssl('req', '-x509', ...newKey(this.#key), '-out', this.ca, '-days', '2', '-subj', `/CN=${name}`)
  }

  /** Issues a certificate for the loopback names; `expired`: valid until yesterday. */
  issue(name: string, options: { expired?: boolean } = {}): { cert: string; key: string } {
    const [cert, key, request, settings] = ['pem', 'key', 'csr', 'cnf'].map((end) =>
      join(this.folder, `${name}.${end}`),
    ) as [string, string, string, string]
    writeFileSync(settings, 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\n')
    openssl('req', ...newKey(key), '-out', request, '-subj', `/CN=${name}`)
    if (options.expired === true) this.#issueExpired(request, cert, settings)
    else {
      const signing = ['-CA', this.ca, '-CAkey', this.#key, '-CAcreateserial', '-extfile', settings, '-days', '1']
      openssl('x509', '-req', '-in', request, '-out', cert, ...signing)
    }
    return { cert, key }
  }

  /** `openssl x509` accepts no dates before version 3.4, but `openssl ca` does. */
  #issueExpired(request: string, cert: string, settings: string): void {
    const index = join(this.folder, 'index.txt')
    writeFileSync(index, '')
    writeFileSync(join(this.folder, 'serial'), '01\n')
    const config = join(this.folder, 'ca.cnf')
    const section = [
      `database=${index}`,
      `serial=${join(this.folder, 'serial')}`,
      `new_certs_dir=${this.folder}`,
      'default_md=sha256',
      'policy=any',
      'unique_subject=no',
    ]
    writeFileSync(config, `[ca]\ndefault_ca=own\n[own]\n${section.join('\n')}\n[any]\ncommonName=supplied\n`)
    const dates = ['-startdate', '200101000000Z', '-enddate', '200102000000Z']
    openssl(
      'ca',
      '-batch',
      '-config',
      config,
      '-in',
      request,
      '-cert',
      this.ca,
      '-keyfile',
      this.#key,
      '-out',
      cert,
      '-extfile',
      settings,
      '-notext',
      ...dates,
    )
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

function newKey(file: string): string[] {
  return ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', file]
}

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' })
}
