/** The console's document. It says nothing that comes from outside; the script fills it. */
export const CONSOLE_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sandbox console</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/console/style.css">
<script type="module" src="/console/main.js"></script>
</head>
<body>
<noscript>The console needs scripts; they come from this sandbox only.</noscript>
<form id="sign-in" hidden>
<h1>Sandbox console</h1>
<p id="sign-in-message" role="status"></p>
<label for="key">A person's key</label>
<input id="key" type="password" autocomplete="off" required placeholder="band_u_…">
<button type="submit">Open</button>
</form>
<div id="app" hidden>
<nav aria-label="Rooms">
<header><h1>Sandbox</h1><span id="me"></span> <span id="link" role="status">connecting…</span></header>
<form id="new-room">
<label class="hidden" for="new-title">Title of a new room</label>
<input id="new-title" maxlength="120" placeholder="New room" autocomplete="off">
<button type="submit">Create</button>
</form>
<ul id="rooms"></ul>
<p id="no-rooms" hidden>No room yet. Create one, or let something write into one: it shows up here.</p>
</nav>
<main>
<header><h2 id="title">No room</h2><button id="delete" type="button">Delete room</button></header>
<p id="notice" role="alert" hidden></p>
<div id="room" hidden>
<section id="timeline" role="log" aria-label="Messages" aria-live="polite" tabindex="0"></section>
<form id="composer">
<ul id="suggestions" role="listbox" aria-label="People" hidden></ul>
<label class="hidden" for="text">Message</label>
<textarea id="text" rows="1" placeholder="Write; @ mentions somebody" role="combobox" aria-autocomplete="list" aria-expanded="false" aria-controls="suggestions"></textarea>
<button type="submit">Send</button>
</form>
</div>
</main>
<aside aria-label="In this room">
<h2>In this room</h2>
<ul id="people"></ul>
<form id="add" hidden>
<label class="hidden" for="addable">Somebody to add</label>
<select id="addable"></select>
<button type="submit">Add</button>
</form>
</aside>
</div>
</body>
</html>
`;
