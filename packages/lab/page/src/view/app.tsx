import { type ScenarioResult, scenarioOf } from '@leasehold/lab/scenarios/index'
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Action } from '../view-model/actions.js'
import type { ViewModel } from '../view-model/view-model.js'
import { type Scene, sceneOf } from '../view-model/scenes.js'
import type { Simulation } from '../view-model/simulation.js'
import { addressOf, isSeed, readAddress } from './address.js'
import { Controls, Gallery } from './controls.js'
import { Driver } from './driver.js'
import { linksOf, namesOf, NARROW_PX } from './layout.js'
import { Announcer, Log } from './log.js'
import { choicesFor, Mischief, Panel } from './panel.js'
import { Picture } from './picture.js'

const COPIED_MS = 1500
/** Width of the window up to which there is one column, as in the style sheet. */
const SINGLE_PX = 1000

/** What the page is at, and what can be done with it. */
function usePage(onDriver: (driver: Driver) => void) {
  const [, draw] = useState(0)
  const [address, setAddress] = useState(() => readAddress(location.hash))
  const [selected, select] = useState<string>()
  const [copied, setCopied] = useState(false)
  const driver = useMemo(() => new Driver(() => draw((n) => n + 1)), [])
  useEffect(() => onDriver(driver), [driver])
  useEffect(() => {
    select(undefined)
    void driver.open(address.scene, address.seed, address.actions)
  }, [address])
  useEffect(() => {
    const changed = (): void => setAddress(readAddress(location.hash))
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [])
  const go = (scene: Scene, seed: number): void => {
    const next = { scene, seed, actions: [] }
    history.replaceState(null, '', addressOf(next))
    driver.playing = true
    setAddress(next)
  }
  const copy = async (): Promise<void> => {
    const hash = addressOf({ ...address, actions: driver.simulation?.actions ?? [] })
    history.replaceState(null, '', hash)
    // Without leave to write the clipboard, the address bar has it.
    await navigator.clipboard?.writeText(location.href).catch(() => {})
    setCopied(true)
    setTimeout(() => setCopied(false), COPIED_MS)
  }
  const act = (action: Action): void => driver.act(action)
  const onLink = (a: string, b: string): void => {
    const ours = driver.simulation?.injector.isOurCut(a, b) === true
    act({ do: ours ? 'heal' : 'cut', who: a, to: b })
  }
  return { address, selected, select, copied, copy, driver, go, act, onLink }
}

/** Links of a machine. */
function linksAt(simulation: Simulation, view: ViewModel, who: string | undefined) {
  if (who === undefined) return []
  return linksOf(namesOf(view), simulation.play.system.cluster !== undefined)
    .filter((pair) => pair.includes(who))
    .map(([a, b]) => ({ to: a === who ? b : a, isCut: simulation.injector.isCut(a, b) }))
}

/** The whole page. `onDriver` gets what drives it, for scripts. */
export function App({ onDriver }: { readonly onDriver: (driver: Driver) => void }): JSX.Element {
  const { address, selected, select, copied, copy, driver, go, act, onLink } = usePage(onDriver)
  const narrow = useMedia(NARROW_PX)
  const single = useMedia(SINGLE_PX)
  const { simulation } = driver
  const view = simulation?.viewModel()
  const choices = view === undefined || selected === undefined ? [] : choicesFor(view, selected)
  useKeys({
    ...timeKeys(driver),
    Escape: () => select(undefined),
    ...Object.fromEntries(choices.map(({ key, action }) => [key, () => act(action)])),
  })

  const { scene, seed, problem = driver.problem } = address
  const inCatalog = scenarioOf(scene.scenario.id) !== undefined
  const verdict = simulation?.result !== undefined && <Verdict result={simulation.result} inCatalog={inCatalog} />
  const panel = simulation !== undefined && view !== undefined && (
    <Panel
      {...{ view, selected, onLink, links: linksAt(simulation, view, selected) }}
      onAct={act}
      onClose={() => select(undefined)}
    />
  )
  return (
    <>
      <Top />
      <Gallery scene={scene} onScene={(one) => go(one, seed)} />
      <main>
        <div class="stage">
          <Caption scene={scene} onScene={(one) => go(one, seed)} />
          <Controls
            {...{ driver, seed, copied, at: simulation?.at ?? 0 }}
            onSeed={(given) => isSeed(given) && go(scene, given)}
            onAgain={() => go(scene, seed)}
            onCopy={() => void copy()}
          />
          <Problem text={problem} />
          {simulation !== undefined && view !== undefined && (
            <>
              <div class="frame">
                <Picture
                  {...{ simulation, view, pictureMs: driver.pictureMs, narrow, selected, onLink }}
                  onSelect={(name) => select(name === selected ? undefined : name)}
                />
              </div>
              <Mischief view={view} onAct={act} />
              {single && verdict}
              {single && panel}
              <Legend traceHash={simulation.traceHash} />
            </>
          )}
        </div>
        <aside>
          {!single && verdict}
          {!single && panel}
          <Journal simulation={simulation} />
        </aside>
      </main>
    </>
  )
}

function Journal({ simulation }: { readonly simulation: Driver['simulation'] }): JSX.Element | null {
  if (simulation === undefined) return null
  const { entries } = simulation.journal
  return (
    <>
      <Log entries={entries} />
      <Announcer entries={entries} />
    </>
  )
}

function Problem({ text }: { readonly text: string | undefined }): JSX.Element | null {
  if (text === undefined) return null
  return (
    <p class="problem" role="alert">
      {text}
    </p>
  )
}

function Top(): JSX.Element {
  return (
    <header class="top">
      <h1>
        Leasehold <span>lab</span>
      </h1>
      <p>the production code of members, clients and guards, in a simulated world inside this page</p>
    </header>
  )
}

/** Keys for the time of the world. */
function timeKeys(driver: Driver): Record<string, () => void> {
  return { ' ': () => driver.toggle(), '.': () => driver.step(), ArrowRight: () => driver.jump(1) }
}

function Caption({ scene, onScene }: { readonly scene: Scene; readonly onScene: (scene: Scene) => void }): JSX.Element {
  const beside = scene.beside === undefined ? undefined : sceneOf(scene.beside)
  return (
    <section class="caption">
      <h2>{scene.scenario.title}</h2>
      <p>
        {scene.scenario.text} <span class="hint">{scene.hint}</span>{' '}
        {beside !== undefined && (
          <button type="button" class="beside" onClick={() => onScene(beside)}>
            Compare: {beside.scenario.title}
          </button>
        )}
      </p>
    </section>
  )
}

function Verdict({ result, inCatalog }: { readonly result: ScenarioResult; readonly inCatalog: boolean }): JSX.Element {
  const { violations } = result.observed
  const shown = violations.length > 0
  const text = !result.ok
    ? `Not as expected: ${result.differences.join('; ')}`
    : shown
      ? `Violation, as expected: ${violations.join(', ')}.`
      : 'No violation, as expected.'
  return (
    <p class={`verdict ${result.ok ? (shown ? 'shown' : 'clean') : 'wrong'}`} role="status">
      <b>{text}</b> Trace {result.traceHash}, the same as{' '}
      {inCatalog ? <code>{`lab run ${result.scenario} --seed ${result.seed}`}</code> : 'in Node'}. Play on, and take
      over by hand.
    </p>
  )
}

function Legend({ traceHash }: { readonly traceHash: string }): JSX.Element {
  return (
    <p class="legend">
      Dots are messages, thinned and drawn slower than they travel: <i class="members" /> between members,{' '}
      <i class="client" /> of clients, <i class="grant" /> grants, <i class="refusal" /> refusals. Cells are the end of
      a member's log: <i class="cell committed" /> committed, <i class="cell written" /> written,{' '}
      <i class="cell missing" /> not there. Keys: tab and enter select, letters act on what is selected. Trace so far:{' '}
      <code id="hash">{traceHash}</code>, equal for equal seeds and actions, here and in Node.
    </p>
  )
}

/** Whether the window is so narrow. */
function useMedia(maxWidthPx: number): boolean {
  const query = useMemo(() => matchMedia(`(max-width: ${maxWidthPx}px)`), [])
  const [narrow, set] = useState(query.matches)
  useEffect(() => {
    const changed = (): void => set(query.matches)
    query.addEventListener('change', changed)
    return () => query.removeEventListener('change', changed)
  }, [query])
  return narrow
}

/** Keys of the page; not while a field has the focus. */
function useKeys(keys: Readonly<Record<string, () => void>>): void {
  const present = useRef(keys)
  present.current = keys
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      const { target } = event
      if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) return
      // A button has its own space.
      if (event.key === ' ' && target instanceof HTMLButtonElement) return
      const action = present.current[event.key]
      if (action === undefined) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [])
}
