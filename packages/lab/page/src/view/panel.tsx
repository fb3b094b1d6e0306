import type { JSX } from 'preact'
import type { Action } from '../view-model/actions.js'
import type { ClientView, MachineView, ViewModel } from '../view-model/view-model.js'

/** Something that can be done to the selected machine, by button or by key. */
export interface Choice {
  readonly key: string
  readonly text: string
  readonly action: Action
  readonly group: 'process' | 'network' | 'clock' | 'work'
}

const JUMP_SECONDS = 15
const FAST_PPM = 200_000
const HELD_SECONDS = 30

/** What can be done to a machine, as it stands. */
export function choicesFor(view: ViewModel, who: string): readonly Choice[] {
  const machine = [...view.members, ...view.clients, ...view.resources].find(({ name }) => name === who)
  if (machine === undefined) return []
  const client = view.clients.find(({ name }) => name === who)
  return [...(client === undefined ? [] : workOf(client)), ...processOf(machine, client), ...surroundings(machine)]
}

function workOf(client: ClientView): Choice[] {
  const { name: who, state, hold } = client
  if (state === 'down') return []
  const choice = (key: string, text: string, action: Action): Choice => ({ key, text, action, group: 'work' })
  const idle = !client.busy
  return [
    ...(idle && hold === undefined ? [choice('t', 'Take the lock', { do: 'take', who })] : []),
    ...(idle ? [choice('w', 'Write', { do: 'write', who })] : []),
    ...(idle && hold !== undefined ? [choice('r', 'Release the lock', { do: 'release', who })] : []),
    choice('a', client.auto ? 'Stop working by itself' : 'Work by itself', { do: 'auto', who, on: !client.auto }),
  ]
}

function processOf(machine: MachineView, client: ClientView | undefined): Choice[] {
  const { name: who, state } = machine
  const choice = (key: string, text: string, action: Action): Choice => ({ key, text, action, group: 'process' })
  if (state === 'down') return [choice('k', 'Start again', { do: 'start', who })]
  const paused = state === 'paused'
  return [
    choice('p', paused ? 'Resume' : 'Pause', { do: paused ? 'resume' : 'pause', who }),
    ...(client !== undefined && !paused && !client.armed
      ? [choice('b', 'Pause inside its next write', { do: 'pauseInWrite', who })]
      : []),
    choice('k', 'Kill', { do: 'kill', who }),
  ]
}

function surroundings(machine: MachineView & Partial<ClientView>): Choice[] {
  const { name: who, isolated, drift, losesRenewals, served, doing } = machine
  const network = (key: string, text: string, action: Action): Choice => ({ key, text, action, group: 'network' })
  const clock = (key: string, text: string, action: Action): Choice => ({ key, text, action, group: 'clock' })
  return [
    network('i', isolated ? 'Connect again' : 'Cut off from all others', { do: isolated ? 'rejoin' : 'isolate', who }),
    ...(served === true
      ? [
          network('d', losesRenewals === true ? 'Let renewals through' : 'Lose its renewals', {
            do: 'loseRenewals',
            who,
            on: losesRenewals !== true,
          }),
        ]
      : []),
    ...(doing === undefined
      ? []
      : [network('h', `Hold its next write for ${HELD_SECONDS} s`, { do: 'holdWrite', who, for: HELD_SECONDS })]),
    clock('c', `Wall clock +${JUMP_SECONDS} s`, { do: 'stepClock', who, clock: 'wall', by: JUMP_SECONDS }),
    clock('v', `Wall clock −${JUMP_SECONDS} s`, { do: 'stepClock', who, clock: 'wall', by: -JUMP_SECONDS }),
    clock('m', `Monotonic clock +${JUMP_SECONDS} s`, { do: 'stepClock', who, clock: 'monotonic', by: JUMP_SECONDS }),
    clock('f', drift === 0 ? `Clocks ${FAST_PPM / 10_000} % fast` : 'Clocks true', {
      do: 'drift',
      who,
      ppm: drift === 0 ? FAST_PPM : 0,
    }),
  ]
}

const GROUPS = { work: 'Work', process: 'Process', network: 'Network', clock: 'Clocks' } as const

interface PanelProps {
  readonly view: ViewModel
  readonly selected: string | undefined
  readonly onAct: (action: Action) => void
  readonly onClose: () => void
  /** Links of what is selected. */
  readonly links: readonly { readonly to: string; readonly isCut: boolean }[]
  readonly onLink: (a: string, b: string) => void
}

/** What can be done to what is selected. */
export function Panel({ view, selected, onAct, onClose, links, onLink }: PanelProps): JSX.Element {
  if (selected === undefined) {
    return (
      <section class="panel" aria-label="actions">
        <p class="hint">
          Select a machine in the picture to pause it, kill it, cut it off or turn its clocks. A click on a line cuts
          it; another one heals it.
        </p>
      </section>
    )
  }
  const choices = choicesFor(view, selected)
  return (
    <section class="panel" aria-label={`actions for ${selected}`}>
      <header>
        <h2 class={/^C\d$/.test(selected) ? `c${selected.slice(1)}` : ''}>{selected}</h2>
        <button type="button" class="close" onClick={onClose} aria-label="select nothing">
          ×
        </button>
      </header>
      {(Object.keys(GROUPS) as (keyof typeof GROUPS)[]).map((group) => {
        const own = choices.filter((choice) => choice.group === group)
        if (own.length === 0) return null
        return (
          <div class="group" key={group} role="group" aria-label={GROUPS[group]}>
            <h3>{GROUPS[group]}</h3>
            <div class="buttons">
              {own.map(({ key, text, action }) => (
                <button type="button" key={key} data-do={action.do} onClick={() => onAct(action)}>
                  {text} <kbd>{key}</kbd>
                </button>
              ))}
            </div>
          </div>
        )
      })}
      {links.length > 0 && (
        <div class="group" role="group" aria-label="links">
          <h3>Links: cut or heal</h3>
          <div class="buttons">
            {links.map(({ to, isCut }) => (
              <button type="button" key={to} aria-pressed={isCut} onClick={() => onLink(selected, to)}>
                {to}
              </button>
            ))}
          </div>
        </div>
      )}
    </section>
  )
}

/** The mischief that everybody wants to do first. */
export function Mischief({
  view,
  onAct,
}: {
  readonly view: ViewModel
  readonly onAct: (action: Action) => void
}): JSX.Element {
  const leader = view.members.find(({ role, state }) => role === 'leader' && state === 'up')
  const holder =
    view.clients.find(({ hold, state, armed }) => hold !== undefined && state === 'up' && !armed) ??
    view.clients.find(({ state, armed }) => state === 'up' && !armed)
  const stopped = [...view.members, ...view.clients, ...view.resources].filter(({ state }) => state !== 'up')
  const off = [...view.members, ...view.clients, ...view.resources].filter(({ isolated }) => isolated)
  const heal = (): void => {
    for (const { name, state } of stopped) onAct({ do: state === 'paused' ? 'resume' : 'start', who: name })
    for (const { name } of off) onAct({ do: 'rejoin', who: name })
  }
  return (
    <div class="mischief" role="group" aria-label="quick actions">
      <button
        type="button"
        data-quick="pause"
        disabled={holder === undefined}
        onClick={() => holder && onAct({ do: 'pauseInWrite', who: holder.name })}
      >
        Pause {holder?.name ?? 'the holder'} inside its write
      </button>
      {leader !== undefined && (
        <button type="button" data-quick="leader" onClick={() => onAct({ do: 'kill', who: leader.name })}>
          Kill the leader ({leader.name})
        </button>
      )}
      <button
        type="button"
        data-quick="isolate"
        disabled={holder === undefined}
        onClick={() => holder && onAct({ do: 'isolate', who: holder.name })}
      >
        Cut off {holder?.name ?? 'the holder'}
      </button>
      <button type="button" data-quick="heal" disabled={stopped.length + off.length === 0} onClick={heal} class="heal">
        Wake, start and connect all
      </button>
    </div>
  )
}
