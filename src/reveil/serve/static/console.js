// What pages do besides being pages: follow a job, show how far an upload is, count while roles are chosen, copy.
// Every page works without it.

const byId = (id) => document.getElementById(id);

function follow(box) {
  const url = box.dataset.follow;
  const show = (job) => {
    byId("stage").textContent = job.stage || "";
    const bar = byId("bar");
    if (job.done === null || job.done === undefined) bar.removeAttribute("value");
    else bar.value = job.done;
    if (job.over) window.location.replace(box.dataset.then);
  };
  if ("EventSource" in window) {
    const source = new EventSource(`${url}/events`);
    source.onmessage = (event) => show(JSON.parse(event.data));
    source.onerror = () => { source.close(); window.setTimeout(() => poll(url, show), 1000); };
  } else poll(url, show);
}

async function poll(url, show) {
  const answer = await fetch(`${url}/status`);
  if (!answer.ok) return;
  const job = await answer.json();
  show(job);
  if (!job.over) window.setTimeout(() => poll(url, show), 1000);
}

function watchUpload(form) {
  const file = form.querySelector("input[type=file]");
  const drop = form.querySelector(".drop");
  if (drop) {
    for (const name of ["dragover", "dragenter"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
    for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files.length) { file.files = event.dataTransfer.files; form.requestSubmit(); }
    });
  }
  form.addEventListener("submit", (event) => {
    if (!file.files.length) return;
    event.preventDefault();
    const bar = form.querySelector("progress") || byId("sent");
    const trouble = form.querySelector("p[hidden]") || byId("trouble");
    const request = new XMLHttpRequest();
    bar.hidden = false;
    request.upload.onprogress = (sent) => { if (sent.lengthComputable) bar.value = sent.loaded / sent.total; };
    request.onload = () => {
      if (request.responseURL && request.status < 400) window.location.assign(request.responseURL);
      else { document.open(); document.write(request.responseText); document.close(); }
    };
    request.onerror = () => { bar.hidden = true; trouble.hidden = false; };
    request.open("POST", form.action);
    request.send(new FormData(form));
  });
}

function countWhileChoosing(form) {
  const chosen = () => [...form.querySelectorAll("select[data-role]")].map((one) => (one.value === "quasi" ? "q" : "-")).join("");
  let turn = 0;
  form.addEventListener("change", async (event) => {
    if (!event.target.matches("select[data-role]")) return;
    const mine = ++turn;
    const place = byId("alone-text");
    place.classList.add("busy");
    const answer = await fetch(`${form.dataset.unique}?role=${chosen()}`);
    if (mine !== turn) return;
    place.classList.remove("busy");
    if (!answer.ok) return;
    const found = await answer.json();
    place.textContent = `${found.unique.toLocaleString("en")} of ${found.rows.toLocaleString("en")} people are unique by these columns.`;
  });
}

function copying() {
  for (const block of document.querySelectorAll("pre[data-copy]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "second small";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
    });
    block.after(button);
  }
}

for (const box of document.querySelectorAll("[data-follow]")) follow(box);
for (const form of document.querySelectorAll("form[data-upload]")) watchUpload(form);
for (const form of document.querySelectorAll("form[data-unique]")) countWhileChoosing(form);
for (const output of document.querySelectorAll("output[for]")) {
  const range = byId(output.htmlFor.value);
  const show = () => { output.textContent = `${Math.round(range.value * 100)} %`; };
  range.addEventListener("input", show);
  show();
}
copying();
