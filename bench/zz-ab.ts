// usage: tsx ab.ts "A=env" "B=env" workloads...
import { startLeasehold } from '/tmp/w/speed/bench/service.ts'
import { measure } from '/tmp/w/speed/bench/measure.ts'
const variants = (process.env.VARS ?? ',').split(',')
const tasks = (process.env.TASKS ?? '64').split(',').map(Number)
const rounds = Number(process.env.ROUNDS ?? 5), secs = Number(process.env.SECS ?? 1)
const pick = process.env.PICK ?? 'distinct'
const cpuOf = (pid: number) => { const f = require('fs').readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' '); return (Number(f[11]) + Number(f[12])) * 10_000 }
import { createRequire } from 'node:module'
const require = createRequire(import.meta.url)
const services: any[] = []
for (const v of variants) {
  for (const kv of v.split(';')) { const [k, x] = kv.split('='); if (k) process.env[k] = x ?? '' }
  services.push(await startLeasehold())
  for (const kv of v.split(';')) { const [k] = kv.split('='); if (k) delete process.env[k] }
}
for (const n of tasks) {
  const res = variants.map(() => [] as any[])
  for (let r = 0; r < rounds; r++) for (let i = 0; i < variants.length; i++) {
    const s = services[i]
    const c0 = process.cpuUsage(), d0 = cpuOf(s.pid)
    let pairs = 0
    const subj = { system: 'x', async pair(t: number) { const ms = await (pick === 'distinct' ? s.distinct : s.oneName).pair(t); pairs++; return ms } }
    const m = await measure(subj, n, secs)
    const c1 = process.cpuUsage(c0), d1 = cpuOf(s.pid) - d0
    res[i].push({ ...m, client: (c1.user + c1.system) / pairs, server: d1 / pairs })
  }
  const med = (xs: number[]) => xs.sort((a, b) => a - b)[Math.floor(xs.length / 2)]
  for (let i = 0; i < variants.length; i++) console.log(String(n).padStart(4), (variants[i] || 'base').padEnd(24), 'ops', Math.round(med(res[i].map((x) => x.opsPerSecond))), 'max', Math.round(Math.max(...res[i].map((x) => x.opsPerSecond))), 'p50', med(res[i].map((x) => x.p50Ms)).toFixed(2), 'p99', med(res[i].map((x) => x.p99Ms)).toFixed(2), 'cpu/pair client', med(res[i].map((x) => x.client)).toFixed(1), 'server', med(res[i].map((x) => x.server)).toFixed(1))
}
for (const s of services) await s.stop()
process.exit(0)
