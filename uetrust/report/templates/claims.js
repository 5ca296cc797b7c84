
const rows=[...document.querySelectorAll('#claims tbody tr')],say=document.getElementById('shown');
function pick(){const v=document.getElementById('v').value,s=document.getElementById('s').value,t=document.getElementById('t').value.toLowerCase();let n=0;
for(const r of rows){const ok=(!v||r.dataset.v===v)&&(!s||r.dataset.s===s)&&(!t||r.textContent.toLowerCase().includes(t));r.hidden=!ok;n+=ok}say.textContent=n+' of '+rows.length+' claims'}
for(const id of ['v','s','t'])document.getElementById(id).addEventListener('input',pick);pick();
