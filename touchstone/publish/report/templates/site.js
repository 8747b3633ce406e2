"use strict";
// Lists the pages whose names have all words of the search.
const pages = JSON.parse(document.getElementById("search-index").textContent);
const form = document.getElementById("search"), input = form.querySelector("input");
const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
const texts = pages.map(([name, kind]) => plain(`${name} ${kind}`));
const most = 20;

function link([name, kind, page]) {
  const item = document.createElement("li"), anchor = document.createElement("a");
  anchor.href = page;
  anchor.textContent = name;
  item.append(anchor, ` ${kind}`);
  return item;
}

function search() {
  const words = plain(input.value).split(/\s+/).filter(Boolean);
  const found = words.length ? pages.filter((_, place) => words.every((word) => texts[place].includes(word))) : [];
  form.querySelector("ul").replaceChildren(...found.slice(0, most).map(link));
  const more = found.length > most ? `, the first ${most} below` : "";
  form.querySelector("[role=status]").textContent = words.length ? `${found.length.toLocaleString("en")} found${more}` : "";
}

form.hidden = false;
input.addEventListener("input", search);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  form.querySelector("li a")?.click();
});
if (input.value) search(); // the browser keeps it when somebody comes back
