import type { JSX } from 'preact'
import { type Scene, SCENES } from '../view-model/scenes.js'
import { type Driver, SPEEDS } from './driver.js'

interface GalleryProps {
  readonly scene: Scene
  readonly onScene: (scene: Scene) => void
}

/** Scenes, one click each. */
export function Gallery({ scene, onScene }: GalleryProps): JSX.Element {
  return (
    <nav class="gallery" aria-label="scenes">
      {SCENES.map((one) => (
        <button
          type="button"
          key={one.id}
          data-scene={one.id}
          aria-current={one.id === scene.id ? 'true' : undefined}
          onClick={() => onScene(one)}
        >
          {one.free !== true && <small>{one.id}</small>}
          {one.name}
        </button>
      ))}
    </nav>
  )
}

interface ControlsProps {
  readonly driver: Driver
  readonly seed: number
  readonly at: number
  readonly onSeed: (seed: number) => void
  readonly onAgain: () => void
  readonly onCopy: () => void
  readonly copied: boolean
}

/** Time, and what the run is. */
export function Controls(props: ControlsProps): JSX.Element {
  const { driver, seed, at, onSeed, onAgain, onCopy, copied } = props
  const { playing } = driver
  return (
    <div class="controls" role="toolbar" aria-label="time">
      <button type="button" class="primary" id="play" aria-pressed={playing} onClick={() => driver.toggle()}>
        {playing ? 'Stop' : 'Play'} <kbd>space</kbd>
      </button>
      <button type="button" id="step" onClick={() => driver.step()}>
        Step <kbd>.</kbd>
      </button>
      <button type="button" id="jump" onClick={() => driver.jump(1)}>
        +1 s <kbd>→</kbd>
      </button>
      <SpeedSelect driver={driver} />
      {/* As wide with the word as without it: nothing below may move under the pointer. */}
      <output
        class={`clock ${driver.slow ? 'slow' : ''}`}
        id="clock"
        aria-label="second of the scene"
        title={driver.slow ? 'this machine is slower than the speed that was asked for' : undefined}
      >
        {at.toFixed(at < 100 ? 2 : 1)} s<small>{driver.slow ? 'slow' : ''}</small>
      </output>
      <span class="spring" />
      <label>
        Seed{' '}
        <input
          id="seed"
          type="number"
          min="0"
          max="4294967295"
          value={seed}
          onChange={(event) => onSeed(Number((event.target as HTMLInputElement).value))}
        />
      </label>
      <button type="button" id="again" onClick={onAgain}>
        Again
      </button>
      <button
        type="button"
        id="copy"
        onClick={onCopy}
        title="The address does all of this again, what was done by hand included"
      >
        {copied ? 'Copied' : 'Copy address'}
      </button>
    </div>
  )
}

function SpeedSelect({ driver }: { readonly driver: Driver }): JSX.Element {
  return (
    <label>
      Speed{' '}
      <select
        id="speed"
        value={String(driver.speed)}
        onChange={(event) => driver.setSpeed(Number((event.target as HTMLSelectElement).value))}
      >
        {SPEEDS.map((one) => (
          <option key={one} value={String(one)}>
            {one}×
          </option>
        ))}
      </select>
    </label>
  )
}
