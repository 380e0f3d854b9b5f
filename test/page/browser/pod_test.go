package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const upPod = "#/pods/shop/api-016"

func TestFollowsALog(t *testing.T) {
	url := startFixture(t, 20)
	p := startChromium(t)
	p.do("open", chromedp.Navigate(url+upPod))
	p.click("[role=tab]", "Logs")
	p.see(".log-line", "request 199")
	p.see(".log-line .ansi-fg-2", "INFO")
	p.until("new lines come, and are in view", `document.querySelectorAll(".log-line").length > 201 && document.querySelector(".log").scrollTop > 0`)
	p.do("search", chromedp.SendKeys(".pane input[type=search]", "request 17"))
	p.until("all matches are found", `document.querySelector(".found").textContent == "11 matches"`)
	p.key(kb.Enter)
	p.see(".found", "1 of 11")
	p.until("more lines come", `document.querySelectorAll(".log-line").length > 206`)
	p.see(".found", "1 of 11")
	p.click("button", "Times")
	p.until("times are shown", `document.querySelector(".log-line time").checkVisibility()`)
	p.click("button", "Follow")
	p.see(".pane-foot", "Not following")
}

func TestTypesInATerminal(t *testing.T) {
	url := startFixture(t, 20)
	p := startChromium(t)
	p.do("open", chromedp.Navigate(url+upPod))
	p.click("[role=tab]", "Terminal")
	p.click("button", "Start")
	p.see(".xterm-rows", "echo of sh")
	p.until("the terminal has the focus", `document.activeElement.closest(".xterm") != null`)
	p.key("hello from the page", kb.Enter)
	p.see(".xterm-rows", "hello from the page")
	p.key("exit", kb.Enter)
	p.see(".pane-foot", "The program has ended")
}

// TestSaysThatTheConnectionIsLost goes on when the agent is back.
func TestSaysThatTheConnectionIsLost(t *testing.T) {
	fixture := newFixture(t, 20)
	p := startChromium(t)
	p.allow("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET")
	p.do("open", chromedp.Navigate(fixture.url))
	p.see(".connection", "Live")
	fixture.stop()
	p.see(".banner", "The connection to the agent is lost")
	p.see(".banner", "Next try in")
	p.until("what was there stays", `document.querySelectorAll(".scroll .row").length > 5`)
	fixture.start()
	p.click(".banner button", "Try now")
	p.see(".connection", "Live")
	p.until("no banner", `!document.querySelector(".banner")`)
}
