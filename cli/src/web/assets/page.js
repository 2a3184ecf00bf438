// Keeps a page up to date, and lets it be used by keyboard. Everything works without it.
'use strict'

const main = () => document.getElementById('main')
const lost = document.getElementById('lost')

// Whoever is in the middle of something is not disturbed.
const isBusy = () =>
  document.hidden || main().contains(document.activeElement) && document.activeElement !== main() &&
  document.activeElement.matches('input, textarea, select, button') ||
  main().querySelector('details.careful[open]') || document.querySelector('dialog[open]') || !getSelection().isCollapsed

let asking = false
async function refresh() {
  if (asking || isBusy()) return
  asking = true
  try {
    const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, cache: 'no-store' })
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
    const fresh = page.getElementById('main')
    if (fresh && !isBusy()) replace(main(), fresh)
    lost.hidden = true
  } catch {
    lost.hidden = false
  } finally {
    asking = false
  }
}

// Only what has changed, so that the place in the page and what is open stay.
function replace(old, fresh) {
  if (old.isEqualNode(fresh)) return
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) return old.replaceWith(fresh)
  if (old.nodeType !== Node.ELEMENT_NODE) return void (old.nodeValue = fresh.nodeValue)
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== 'open') old.removeAttribute(name)
  for (const { name, value } of [...fresh.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value)
  const [before, after] = [[...old.childNodes], [...fresh.childNodes]]
  after.forEach((child, place) => before[place] ? replace(before[place], child) : old.append(child))
  before.slice(after.length).forEach(child => child.remove())
  wire(old)
}

function wire(within) {
  for (const button of within.querySelectorAll('button[data-copy]')) {
    button.hidden = !navigator.clipboard
    button.onclick = async () => {
      await navigator.clipboard.writeText(button.dataset.copy)
      button.textContent = 'Copied'
      setTimeout(() => { button.textContent = 'Copy' }, 1500)
    }
  }
}

const rows = () => [...main().querySelectorAll('a[data-row]')]
function move(by) {
  const all = rows()
  const place = all.indexOf(document.activeElement)
  all[Math.min(Math.max(place + by, 0), all.length - 1)]?.focus()
}

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, textarea, select')) return
  const keys = {
    '/': () => document.querySelector('.search input').focus(),
    j: () => move(1),
    k: () => move(-1),
    g: () => location.assign('/'),
    '?': () => document.getElementById('keys').showModal(),
  }
  if (!keys[event.key]) return
  event.preventDefault()
  keys[event.key]()
})

wire(document)
const live = new EventSource('/live')
live.addEventListener('look', refresh)
live.onerror = () => { lost.hidden = false }
live.onopen = () => { lost.hidden = true }
