import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { configSchema, environmentName, SETTINGS } from '../../packages/cli/src/serve/settings.js'
import { healthRoutes } from '../../packages/server/src/http/routes/health.js'
import { serve } from '../../packages/server/test/support/harness.js'

/* What cannot run here (Docker, Kubernetes) is checked as far as a script can. */

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'leasehold-deploy-'))
afterAll(() => rmSync(folder, { recursive: true }))

function leasehold(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const bin = join(root, 'packages/leasehold/bin/leasehold.js')
  return spawnSync(process.execPath, [bin, ...args], { encoding: 'utf8', env: { ...process.env, ...env } })
}

/** Files that a deployment names, made here as its comments say, so that `--check-config` can read them. */
function secrets() {
  const peers = join(folder, 'peers')
  const members = 'member=leasehold-0.leasehold,leasehold-1.leasehold,leasehold-2.leasehold'
  const { status, stderr } = spawnSync(
    join(root, 'deploy/peer-certificates.sh'),
    [peers, members, 'n1', 'n2', 'n3', '10.0.0.2'],
    { encoding: 'utf8' },
  )
  expect([status, stderr]).toEqual([0, ''])
  const keys = join(folder, 'keys.json')
  const made = leasehold(['key', 'create', '--keys', keys, '--rule', '*:read'])
  expect([made.status, made.stderr]).toEqual([0, ''])
  return new Map([
    ['keys.json', keys],
    ...readdirSync(peers).map((name): [string, string] => [name, join(peers, name)]),
  ])
}

function checkConfig(env: Record<string, string>): void {
  const { status, stdout, stderr } = leasehold(['serve', '--check-config'], env)
  expect([stderr, stdout, status]).toEqual(['', 'the settings are valid\n', 0])
}

const files = secrets()
/** The same setting with a file of ours in place of the deployment's. */
function local(value: string): string {
  const name = value.split('/').at(-1) as string
  return value.startsWith('/etc/') ? (files.get(name) ?? value) : value
}

test('the example of a config file has known settings, and can be used', () => {
  const example = JSON.parse(read('deploy/config.example.json')) as Record<string, unknown>
  const { properties } = configSchema() as { properties: object }
  expect(Object.keys(example).filter((field) => !(field in properties))).toEqual([])
  const ours = Object.fromEntries(
    Object.entries(example).map(([field, value]) => [field, typeof value === 'string' ? local(value) : value]),
  )
  const file = join(folder, 'config.json')
  writeFileSync(file, JSON.stringify(ours))
  const { status, stderr } = leasehold(['serve', '--config', file, '--check-config'])
  expect([stderr, status]).toEqual(['', 0])
})

describe('the systemd unit', () => {
  const unit = read('deploy/leasehold.service')

  test('starts a command that exists', () => {
    expect(/^ExecStart=\/usr\/bin\/env leasehold (.*)$/m.exec(unit)?.[1]).toBe(
      'serve --config /etc/leasehold/config.json',
    )
    expect(leasehold(['serve', '--help']).stdout).toContain('--config <file>')
  })

  const analyze = spawnSync('systemd-analyze', ['--version']).status === 0
  test.skipIf(!analyze)('is what systemd takes (needs systemd-analyze)', () => {
    const checked = join(folder, 'leasehold.service')
    writeFileSync(checked, unit)
    // Unknown and misplaced settings are warnings, with exit code 0.
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', checked], { encoding: 'utf8' })
    expect([status, stdout, stderr]).toEqual([0, '', ''])
  })
})

test('the Dockerfile copies what is there, and starts the command', () => {
  const docker = read('deploy/Dockerfile')
  for (const [, sources] of docker.matchAll(/^COPY (?!--from)(.*) \S+$/gm)) {
    for (const source of (sources as string).split(' '))
      expect([source, existsSync(join(root, source))]).toEqual([source, true])
  }
  expect(docker).toContain('packages/leasehold/bin/leasehold.js')
  expect(existsSync(join(root, 'packages/leasehold/bin/leasehold.js'))).toBe(true)
  expect(docker).toContain('ENTRYPOINT ["leasehold"]')
})

const variables = new Set(SETTINGS.map(environmentName))

describe('the compose file', () => {
  const { services, volumes } = parse(read('deploy/compose.yaml'), { merge: true }) as {
    services: Record<string, { environment: Record<string, string>; volumes: string[]; init: boolean }>
    volumes: object
  }

  test('has three members with one list, and settings that can be used', () => {
    expect(Object.keys(services)).toEqual(['n1', 'n2', 'n3'])
    for (const [name, service] of Object.entries(services)) {
      const { environment } = service
      expect(Object.keys(environment).filter((variable) => !variables.has(variable))).toEqual([])
      expect(environment.LEASEHOLD_NAME).toBe(name)
      expect(environment.LEASEHOLD_CLUSTER).toContain(`${name}=${name}:4200`)
      expect(Object.keys(volumes)).toContain(service.volumes[0]?.split(':')[0])
      expect(service.init).toBe(true)
      checkConfig(Object.fromEntries(Object.entries(environment).map(([variable, value]) => [variable, local(value)])))
    }
  })
})

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
  // What a manifest holds is what the test is about.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly spec: any
}

describe('the Kubernetes manifests', () => {
  const manifests = parseAllDocuments(read('deploy/kubernetes.yaml')).map((one) => one.toJS() as Manifest)
  const of = (kind: string): Manifest => manifests.find((one) => one.kind === kind) as Manifest
  const { spec } = of('StatefulSet')
  const [container] = spec.template.spec.containers

  test('belong together', () => {
    expect(manifests.map(({ kind }) => kind)).toEqual(['Service', 'PodDisruptionBudget', 'StatefulSet'])
    const { labels } = spec.template.metadata
    expect(of('Service').spec.selector).toEqual(labels)
    expect(of('PodDisruptionBudget').spec.selector.matchLabels).toEqual(labels)
    expect(spec.selector.matchLabels).toEqual(labels)
    expect(spec.serviceName).toBe(of('Service').metadata.name)
    const mounted = container.volumeMounts.map(({ name }: { name: string }) => name)
    expect(mounted).toEqual([spec.volumeClaimTemplates[0].metadata.name, spec.template.spec.volumes[0].name])
  })

  test('probe what the service has', () => {
    const paths = healthRoutes.map(({ path }) => path)
    for (const probe of ['readinessProbe', 'livenessProbe', 'startupProbe']) {
      const { path, port } = container[probe].httpGet
      expect(paths).toContain(path)
      expect(container.ports.map(({ name }: { name: string }) => name)).toContain(port)
    }
  })

  test('have settings that can be used, for each of the replicas', () => {
    for (let i = 0; i < spec.replicas; i++) {
      const name = `leasehold-${i}`
      const env: Record<string, string> = {}
      for (const { name: variable, value } of container.env as { name: string; value?: string }[]) {
        expect(variables.has(variable)).toBe(true)
        env[variable] = local((value ?? name).replace('$(LEASEHOLD_NAME)', name))
      }
      expect(env.LEASEHOLD_CLUSTER).toContain(`${name}=${name}.${spec.serviceName}:4200`)
      checkConfig(env)
    }
  })
})

describe('what is made of metrics', () => {
  test('names only metrics that the service has', async () => {
    const { url } = await serve()
    const metrics = await (await fetch(`${url}/metrics`)).text()
    for (const file of ['deploy/grafana-dashboard.json', 'deploy/prometheus-alerts.yaml']) {
      const names = new Set(read(file).match(/leasehold_[a-z0-9_]+/g))
      expect(names.size).toBeGreaterThan(3)
      for (const name of names) {
        expect([file, name, new RegExp(`^# TYPE ${name.replace(/_bucket$/, '')} `, 'm').test(metrics)]).toEqual([
          file,
          name,
          true,
        ])
      }
    }
  })

  const judge = (args: readonly string[], input = '') => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8', input })
    return { status, output: stdout + stderr }
  }
  const promtool = judge(['--version']).status === 0

  test.skipIf(!promtool)('is what Prometheus takes: the alerts (needs promtool)', () => {
    const { status, output } = judge(['check', 'rules', join(root, 'deploy/prometheus-alerts.yaml')])
    expect(output).toContain('SUCCESS')
    expect(status).toBe(0)
  })

  test.skipIf(!promtool)('is what Prometheus takes: the metrics of a service at work (needs promtool)', async () => {
    const { url } = await serve()
    const acquired = await fetch(`${url}/v1/acquire`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'invoice/42', ttl: '10s', wait: 0 }),
    })
    expect(acquired.status).toBe(200)
    const metrics = await (await fetch(`${url}/metrics`)).text()
    expect(judge(['check', 'metrics'], metrics)).toEqual({ status: 0, output: '' })
  })
})
