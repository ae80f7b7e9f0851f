/** The style of the page, light and dark. It loads no other file, font or script. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --page: #f6f7f8; --card: #ffffff; --ink: #16191d; --soft: #5b636d; --line: #e2e5e9; --hover: rgb(20 30 50 / 7%);
  --answered: #3a76c4; --cached: #a3c9ea; --throttled: #e2a21b; --failed: #c63d2f; --refused: #8467b0; --aborted: #a8b0ba;
  --wait: #4b5563; --wait-fill: rgb(75 85 99 / 16%);
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #111418; --card: #191d23; --ink: #e9ecf0; --soft: #9aa4b0; --line: #2c333c; --hover: rgb(255 255 255 / 9%);
    --answered: #5f9ae6; --cached: #33587f; --throttled: #e8b13d; --failed: #ea6a5c; --refused: #a68ad4; --aborted: #5d6773;
    --wait: #b4bdc8; --wait-fill: rgb(180 189 200 / 18%);
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; font-variant-numeric: tabular-nums; }
header, main, footer { max-width: 1120px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 36px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 6px; letter-spacing: -.01em; }
h2 { font-size: 17px; margin: 0 0 2px; }
h3 { font-size: 14px; margin: 0 0 10px; }
p { margin: 0; } .soft, .note { color: var(--soft); } .note { font-size: 13.5px; margin-bottom: 14px; }
code { font: 13px ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.warn { border-left: 4px solid var(--throttled); background: var(--card); padding: 10px 14px; margin-top: 16px; border-radius: 4px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(210px, 1fr)); gap: 12px; margin: 24px 0 12px; padding: 0; list-style: none; }
.tiles li { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; }
.tiles b { display: block; font-size: 27px; line-height: 1.25; font-weight: 620; letter-spacing: -.02em; }
.tiles span { display: block; color: var(--soft); font-size: 13.5px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px 20px; margin: 12px 0; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 12px; padding: 0; list-style: none; font-size: 13.5px; color: var(--soft); }
.legend li { display: flex; align-items: center; gap: 6px; }
.key { width: 12px; height: 12px; border-radius: 3px; flex: none; }
.key.band { height: 7px; }
svg { display: block; width: 100%; overflow: visible; }
.answered { fill: var(--answered); background: var(--answered); } .cached { fill: var(--cached); background: var(--cached); }
.throttled { fill: var(--throttled); background: var(--throttled); } .failed { fill: var(--failed); background: var(--failed); }
.refused { fill: var(--refused); background: var(--refused); } .aborted { fill: var(--aborted); background: var(--aborted); }
.open { fill: var(--failed); background: var(--failed); } .half_open { fill: var(--throttled); background: var(--throttled); }
.cooldown { fill: var(--refused); background: var(--refused); }
.hit { fill: transparent; } .step:hover .hit { fill: var(--hover); }
.area { fill: var(--wait-fill); } .edge { fill: none; stroke: var(--wait); stroke-width: 1; opacity: .75; vector-effect: non-scaling-stroke; }
.rule { stroke: var(--line); vector-effect: non-scaling-stroke; } .well { fill: var(--line); }
.plot { position: relative; padding-left: 44px; } .plot + .clock { margin-left: 44px; }
.scale { position: absolute; left: 0; right: 0; font-size: 12px; line-height: 1; color: var(--soft); pointer-events: none; display: flex; align-items: center; gap: 6px; transform: translateY(-50%); }
.scale span { width: 38px; text-align: right; flex: none; } .scale::after { content: ""; flex: 1; border-top: 1px solid var(--line); }
.clock { display: flex; justify-content: space-between; font-size: 12px; color: var(--soft); border-top: 1px solid var(--line); padding-top: 4px; }
.host { display: grid; grid-template-columns: 220px 1fr; gap: 18px; padding: 14px 0; border-top: 1px solid var(--line); }
.host:first-of-type { border-top: 0; }
.host h3 { margin: 0 0 2px; overflow-wrap: anywhere; } .host p { font-size: 13px; color: var(--soft); }
.host .clock { border-top: 0; padding-top: 0; }
.host:last-child { border-top: 0; padding: 0; margin-top: -6px; }
.rows { display: grid; grid-template-columns: minmax(120px, 240px) 1fr max-content; gap: 9px 16px; align-items: center; font-size: 14px; }
.rows > :nth-child(3n + 1) { overflow-wrap: anywhere; } .rows > :nth-child(3n) { color: var(--soft); text-align: right; }
.whisker { stroke: var(--cached); stroke-width: 3; stroke-linecap: round; vector-effect: non-scaling-stroke; }
.span { stroke: var(--answered); stroke-width: 9; vector-effect: non-scaling-stroke; }
.track { height: 14px; border-radius: 4px; background: var(--line); overflow: hidden; display: flex; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 12px; } .pair section { margin: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; } caption { text-align: left; color: var(--soft); padding-bottom: 8px; }
th, td { padding: 6px 9px; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; } th { color: var(--soft); font-weight: 550; } thead th { white-space: normal; vertical-align: bottom; line-height: 1.3; }
tbody th { color: var(--ink); font-weight: 400; white-space: normal; overflow-wrap: anywhere; min-width: 150px; }
.roles td:nth-child(2), .roles th:nth-child(2) { text-align: left; }
summary { cursor: pointer; font-size: 14px; color: var(--soft); margin-top: 12px; } summary:focus-visible { outline: 2px solid var(--answered); outline-offset: 3px; }
details[open] summary { margin-bottom: 10px; }
footer { padding-top: 8px; padding-bottom: 40px; font-size: 13px; color: var(--soft); }
@media (max-width: 760px) {
  header, main, footer { padding-left: 14px; padding-right: 14px; } .host { grid-template-columns: 1fr; gap: 8px; }
  .tiles { grid-template-columns: repeat(2, 1fr); } .tiles b { font-size: 22px; }
  .clock span:nth-child(even) { display: none; }
  .rows { grid-template-columns: 1fr max-content; } .rows > :nth-child(3n + 1) { grid-column: 1 / -1; margin-bottom: -6px; }
}
@media print { body { background: none; } section, .tiles li { break-inside: avoid; } }
`;
