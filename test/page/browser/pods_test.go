package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestFindsOneOf500Pods searches with keys only, as people with a pager do.
func TestFindsOneOf500Pods(t *testing.T) {
	url := startFixture(t, 500)
	p := startChromium(t)
	p.do("open", chromedp.Navigate(url))
	p.see(".segments", "All 500")
	p.until("few rows of many", `document.querySelectorAll(".scroll .row").length < 60`)

	p.shortcut("/")
	p.key("416")
	p.until("one row", `document.querySelectorAll(".scroll .row").length == 1`)
	p.see("[role=status]", "1 of 500 pods")
	p.key(kb.ArrowDown)
	p.until("row is active", `document.querySelector(".row.active")?.id == document.querySelector("[role=grid]").getAttribute("aria-activedescendant")`)
	p.key(kb.Enter)
	p.see("h1", "416")
	p.do("back", chromedp.NavigateBack())

	p.see(".scroll .row", "416")
	p.shortcut("/")
	p.key(kb.Escape)
	p.see(".segments", "All 500")
	p.click("[role=columnheader] button", "Pod")
	p.until("sorted by name", `document.querySelector("[aria-sort=ascending]").textContent == "Pod"`)
	p.do("focus", chromedp.Focus("[role=grid]"))
	p.key(kb.End)
	p.until("last row is in view", `(() => { const row = document.querySelector(".row.active"), view = document.querySelector(".scroll");
		return row?.ariaRowIndex == 501 && row.getBoundingClientRect().bottom <= view.getBoundingClientRect().bottom + 1; })()`)
	p.click(".segments button", "Not up")
	p.until("only pods that are not up", `[...document.querySelectorAll(".scroll .row")].every((r) => !r.querySelector(".status.ok"))`)
}

// TestScrollsThrough500Pods scrolls while pods change: rows are there whenever a frame is drawn.
func TestScrollsThrough500Pods(t *testing.T) {
	url := startFixture(t, 500, "-period", "50ms")
	p := startChromium(t)
	p.do("open", chromedp.Navigate(url))
	p.see(".segments", "All 500")
	var blank int
	p.do("scroll", chromedp.Evaluate(`(async () => {
		const view = document.querySelector(".scroll");
		let blank = 0;
		for (let i = 0; i < 60; i++) {
			view.scrollTop += 350;
			await new Promise(requestAnimationFrame);
			await new Promise(requestAnimationFrame);
			const box = view.getBoundingClientRect();
			if (!document.elementFromPoint(box.left + 30, box.top + box.height / 2).closest(".row")) blank++;
		}
		return blank;
	})()`, &blank, awaitPromise))
	if blank > 0 {
		t.Errorf("the list was blank in %d of 60 frames", blank)
	}
}

func TestShowsWhyAPodFails(t *testing.T) {
	url := startFixture(t, 20)
	p := startChromium(t)
	p.do("open", chromedp.Navigate(url))
	p.see(".cell.sentence", "does not exist in the registry")
	p.click(".scroll .row.down", "does not exist in the registry")
	p.see(".sentence-card [role=status]", "does not exist in the registry")
	p.see(".sentence-card code", "spec.containers[0].image")
	p.see(".waterfall .failed", "image app")
	p.until("the bar of the failed step has a width", `document.querySelector(".waterfall .bar.failed").getBoundingClientRect().width > 2`)
}
