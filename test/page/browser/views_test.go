package browser

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// screenshots is where pictures are kept: go test -run TestViews . -screenshots ../../../docs/page
var screenshots = flag.String("screenshots", "", "directory to write screenshots to")

// views are all views of the page; some are kept as pictures.
var views = []struct {
	name, hash string
	kept       bool
}{
	{"pods", "/pods", true},
	{"node", "/node", true},
	{"pod", "/pods/kube-system/web-245", true},
	{"ready", "/pods/shop/api-016", false},
	{"logs", "/pods/shop/api-016/logs", false},
	{"terminal", "/pods/shop/api-016/terminal", false},
	{"yaml", "/pods/shop/api-016/yaml", false},
}

// loaded: the view has what it waits for.
const loaded = `document.querySelector(".connection.live") && document.querySelector("h1") && !document.querySelector("main > .empty, .panel > .empty")`

// TestViews opens all views at both widths, in both schemes: nothing is cut, and each control has a name for screen readers.
func TestViews(t *testing.T) {
	url := startFixture(t, 500)
	p := startChromium(t)
	if *screenshots != "" {
		p.do("let the plots grow", chromedp.Navigate(url), chromedp.Sleep(2*time.Minute))
	}
	for _, width := range []int64{360, 1600} {
		size := []chromedp.EmulateViewportOption{chromedp.EmulateLandscape}
		if width < 720 {
			size = []chromedp.EmulateViewportOption{chromedp.EmulateMobile, chromedp.EmulatePortrait}
		}
		p.do("resize", chromedp.EmulateViewport(width, 900, size...))
		for _, v := range views {
			p.do("open "+v.name, chromedp.Navigate("about:blank"), chromedp.Navigate(url+"#"+v.hash))
			p.until("see "+v.name, loaded)
			p.until("nothing is wider than the screen", `document.documentElement.scrollWidth <= innerWidth`)
			var unnamed []string
			var headings int
			p.do("look for names", chromedp.Evaluate(unnamedControls, &unnamed), chromedp.Evaluate(`document.querySelectorAll("h1").length`, &headings))
			if len(unnamed) > 0 || headings != 1 {
				t.Errorf("%s: controls without names %v, %d headings of the first level", v.name, unnamed, headings)
			}
			for _, scheme := range []string{"light", "dark"} {
				p.scheme(scheme)
				if v.kept {
					p.shot(fmt.Sprintf("%s-%d-%s", v.name, width, scheme))
				}
			}
		}
	}
}

const unnamedControls = `[...document.querySelectorAll("a, button, input, select, [role=grid], [role=log], [role=img]")]
	.filter((e) => e.checkVisibility() && !e.ariaLabel && !e.textContent.trim() && !e.title && !e.labels?.[0]?.textContent.trim())
	.map((e) => e.outerHTML)`

func (p *tab) shot(name string) {
	p.t.Helper()
	var picture []byte
	p.do("screenshot", chromedp.CaptureScreenshot(&picture))
	if *screenshots == "" {
		return
	}
	picture, err := smaller(picture)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
