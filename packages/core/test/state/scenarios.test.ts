import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseScenario, rewrite, ScenarioRunner } from './scenario.js'

const folder = new URL('./scenarios/', import.meta.url)

// UPDATE_SCENARIOS=1 writes what comes out instead of comparing: the difference of the file is the review.
describe('scenarios of the lock state machine', () => {
  for (const file of readdirSync(folder).sort()) {
    it(file, () => {
      const path = new URL(file, folder)
      const text = readFileSync(path, 'utf8')
      const runner = new ScenarioRunner()
      if (process.env.UPDATE_SCENARIOS === '1') {
        const directives = text
          .split(/\n\s*\n/)
          .map((block) => block.split('\n').filter((line) => !line.startsWith('#')))
          .map((lines) => (lines.includes('----') ? lines.slice(0, lines.indexOf('----')) : lines))
          .map((lines) => lines.filter((line) => line.trim() !== ''))
          .filter((lines) => lines.length > 0)
        writeFileSync(
          path,
          rewrite(
            text,
            directives.map((lines) => runner.run(lines.join('\n'))),
          ),
        )
        return
      }
      const steps = parseScenario(text)
      expect(steps.length).toBeGreaterThan(0)
      for (const step of steps)
        expect(`${step.directive}\n----\n${runner.run(step.directive)}`).toBe(
          `${step.directive}\n----\n${step.expected}`,
        )
    })
  }
})
