#!/usr/bin/env python3
"""The page of `rondo board` in a headless Chromium (packages chromium-driver and python3-selenium).

    page_test.py RONDO [--screenshots FOLDER] [--only NAME]

Waits for facts and never for a time: a slow machine takes longer and passes all the same. The last
line is `N passed, N failed`.
"""

import argparse
import csv
import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.parse
import xml.etree.ElementTree
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

import make_runs

TREE = Path(__file__).resolve().parents[2]
PATIENCE = 120  # seconds until a fact that does not come is a failure
RUN = 'sweep/lr0.03-001'  # the one with media and steps


class Board:
    """`rondo board` over a folder."""

    def __init__(self, rondo, folder):
        self.process = subprocess.Popen([rondo, 'board', str(folder), '--port', '0'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        found = re.search(r'http://\S+', line)
        if found is None:
            raise RuntimeError(f'rondo board did not say where it listens, but {line!r}')
        self.url = found.group(0).rstrip('/')

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class Browser:
    """A page of a board, and what tests ask it."""

    def __init__(self, downloads):
        options = webdriver.ChromeOptions()
        for argument in ('--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars',
                         '--force-device-scale-factor=1', '--allow-file-access-from-files'):
            options.add_argument(argument)
        options.add_experimental_option('prefs', {'download.default_directory': str(downloads)})
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        self.driver = webdriver.Chrome(service=Service('/usr/bin/chromedriver'), options=options)
        self.driver.set_script_timeout(PATIENCE)
        self.resize(1360, 820)
        self.look('light')

    def resize(self, width, height):
        self.driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride',
                                    {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': False})

    def look(self, scheme):
        self.driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': [{'name': 'prefers-color-scheme', 'value': scheme}]})

    def open(self, address):
        self.driver.get('about:blank')
        self.driver.get(address)
        self.wait(lambda: self.all('main > *'), 'a page')

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.wait(lambda: self.all(selector), selector)[0]

    def text(self, selector):
        return self.run('return document.querySelector(arguments[0])?.textContent ?? ""', selector)

    def texts(self, selector):
        return self.run('return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)', selector)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def hash(self):
        return self.run('return location.hash')

    def press(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def wait(self, fact, what):
        """What `fact` gives once it is true; errors of elements that a redraw replaced do not count."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                value = fact()
                if value:
                    return value
                problem = f'got {value!r}'
            except Exception as error:  # noqa: BLE001
                problem = repr(error).splitlines()[0]
            if time.monotonic() > end:
                raise AssertionError(f'waited in vain for {what}: {problem}')
            time.sleep(0.02)

    def wait_equal(self, get, expected, what):
        self.wait(lambda: get() == expected, f'{what} to be {expected!r}')

    def names(self):
        return self.texts('.runs .run-row:not(.head):not(.group) .name a')

    def drawn(self, metric):
        """The chart of a metric, once it has its curve."""
        return self.one(f'.chart[data-metric="{metric}"]:not(.loading) canvas')

    def errors(self):
        return [line['message'] for line in self.driver.get_log('browser') if line['level'] == 'SEVERE']


def equal(value, expected):
    assert value == expected, f'expected {expected!r}, got {value!r}'


def check(is_true, what):
    assert is_true, what


def requote(text):
    return urllib.parse.quote(text, safe='')


# Tests get the browser, the board's address, and the folder of runs.

def the_table_has_all_runs_and_names_are_only_text(browser, url, root):
    browser.open(url)
    browser.wait_equal(lambda: browser.text('#tally'), '24 runs', 'the tally')
    check(make_runs.HOSTILE.replace('/', '') in browser.names(), 'a name with markup is shown as it is')
    equal(browser.run('return document.querySelectorAll("main img, main script").length'), 0)
    check(browser.texts('.runs .status')[:1] == ['done'], 'a status is told in words')
    check('AdamW.lr' in ' '.join(browser.texts('.run-row.head button')), 'keys that differ are columns')


def a_regular_expression_filters_runs_and_stays_in_the_address(browser, url, root):
    browser.open(url)
    browser.one('#filter').send_keys('lr0\\.1-')
    browser.wait_equal(lambda: browser.text('#tally'), '6 of 24 runs', 'the tally')
    check(all(name.startswith('lr0.1-') for name in browser.names()), 'only matches are shown')
    browser.open(url + '/' + browser.hash())
    browser.wait_equal(lambda: browser.text('#tally'), '6 of 24 runs', 'the tally after a reload')
    browser.one('#filter').send_keys('(')
    browser.wait(lambda: browser.one('#filter').get_attribute('aria-invalid') == 'true', 'a wrong expression to be marked')
    equal(browser.text('#tally'), '6 of 24 runs')
    browser.open(url + '/#/runs?filter=SGD.lr%3D0.01')
    browser.wait_equal(lambda: browser.text('#tally'), '3 of 24 runs', 'the tally of a filter by config')


def runs_are_grouped_by_a_config_key_and_sorted(browser, url, root):
    browser.open(url)
    Select(browser.one('.runs-page .field select')).select_by_visible_text('batch_size')
    browser.wait(lambda: len(browser.all('.run-row.group')) > 0, 'groups')
    check('batch_size = 32' in browser.text('.run-row.group'), 'the first group is the least value')
    browser.open(url + '/#/runs?sort=metric%3Aval%2Faccuracy&descending=1')
    accuracies = browser.wait(lambda: [float(text) for text in browser.texts('.run-row:not(.head) .metric:nth-of-type(5) > span:last-child') if text],
                              'values')
    equal(accuracies, sorted(accuracies, reverse=True))


def a_pin_stays_on_top_and_a_baseline_gives_differences(browser, url, root):
    browser.open(url)
    browser.one('[data-run="sweep/lr0.01-006"] [title^="Pin"]').click()
    browser.wait(lambda: browser.names()[0] == 'lr0.01-006', 'the pinned run on top')
    browser.one('[data-run="sweep/lr0.01-006"] [title^="Baseline"]').click()
    browser.wait(lambda: any('%' in text for text in browser.texts('.run-row .change')), 'differences in per cent')
    equal(browser.texts('[data-run="sweep/lr0.01-006"] .change'), [])
    check('pinned=' in browser.hash() and 'baseline=' in browser.hash(), 'both are in the address')


def all_of_the_table_works_by_keyboard(browser, url, root):
    browser.open(url)
    browser.wait(lambda: len(browser.names()) > 3, 'runs')
    first, second = browser.names()[:2]
    browser.press('j', ' ')
    browser.wait_equal(lambda: browser.text('#tally'), '24 runs, 1 selected', 'the tally')
    check(browser.run('return document.querySelector(".run-row.selected .name a").textContent') == second, 'j moved down one row')
    browser.press('k', 'b')
    browser.wait(lambda: 'baseline=' in browser.hash(), 'a baseline')
    browser.press('/', 'lr0.03-001')
    browser.wait_equal(browser.names, ['lr0.03-001'], 'the filtered runs')
    browser.press(Keys.ESCAPE, Keys.ENTER)
    browser.wait(lambda: browser.hash().startswith('#/run/sweep%2Flr0.03-001'), 'the run to open')
    browser.one('[role=tab][aria-selected=true]')
    browser.press('2')
    browser.wait_equal(lambda: browser.text('[role=tab][aria-selected=true]'), 'Config', 'the tab')
    browser.press('?')
    browser.wait(lambda: browser.run('return document.querySelector("dialog").open'), 'the help')
    check('Leon Sorokin' in browser.text('dialog'), 'the help holds the licences')
    browser.press(Keys.ESCAPE)
    browser.wait(lambda: not browser.run('return document.querySelector("dialog").open'), 'the help to close')
    browser.press('c')
    browser.wait(lambda: browser.hash().startswith('#/curves'), 'curves')


def curves_lie_over_each_other_and_the_legend_has_values(browser, url, root):
    browser.open(url + '/#/curves?selected=sweep%2Flr0.03-001&selected=sweep%2Flr0.01-002&baseline=sweep%2Flr0.03-001')
    browser.drawn('loss')
    equal(browser.texts('.chart[data-metric="loss"] .legend .name'), ['lr0.03-001', 'lr0.01-002'])
    check(browser.texts('.chart[data-metric="loss"] .change')[1].endswith(' %'), 'the difference from the baseline')
    last = browser.texts('.chart[data-metric="loss"] .legend .num')[0]
    browser.run('window.plain = document.querySelector(".chart[data-metric=loss] canvas").toDataURL()')
    browser.press(']', ']', ']', ']', ']')
    browser.wait(lambda: 'smooth=0.5' in browser.hash(), 'smoothing in the address')
    browser.wait(lambda: browser.texts('.chart[data-metric="loss"] .legend .num')[0] != last, 'smoothed values')
    browser.press('l')
    browser.wait(lambda: 'logY=1' in browser.hash(), 'a logarithmic axis in the address')
    Select(browser.one('.tools select')).select_by_value('time')
    browser.wait(lambda: 'x=time' in browser.hash(), 'the x axis in the address')
    browser.wait(lambda: browser.run('return document.querySelector(".chart[data-metric=loss] canvas").toDataURL() !== window.plain'), 'another picture')
    browser.one('#metric-filter').send_keys('^val/')
    browser.wait_equal(lambda: browser.texts('.chart h3'), ['val/accuracy', 'val/loss'], 'the filtered metrics')


def dragging_zooms_all_curves_and_a_double_click_ends_it(browser, url, root):
    browser.open(url + '/#/curves?selected=sweep%2Flr0.03-001')
    browser.drawn('loss')
    over = browser.one('.chart[data-metric="loss"] .u-over')
    ActionChains(browser.driver).move_to_element_with_offset(over, -60, 0).click_and_hold().move_by_offset(60, 5).move_by_offset(60, 5).release().perform()
    browser.wait(lambda: 'from=' in browser.hash() and 'to=' in browser.hash(), 'the zoom in the address')
    browser.wait(lambda: browser.one('#reset-zoom').is_displayed(), 'a way back')
    over = browser.one('.chart[data-metric="loss"] .u-over')
    ActionChains(browser.driver).double_click(over).perform()
    browser.wait(lambda: 'from=' not in browser.hash(), 'the zoom to end')


def charts_are_saved_as_svg_and_csv(browser, url, root, downloads):
    hostile = make_runs.HOSTILE.replace('/', '')
    browser.open(url + '/#/curves?selected=' + requote(hostile) + '&selected=sweep%2Flr0.03-001')
    browser.drawn('loss')
    for choice in ('SVG', 'CSV'):
        browser.one('.chart[data-metric="loss"] .menu summary').click()
        [button] = [one for one in browser.all('.chart[data-metric="loss"] .popup button') if choice in one.text]
        button.click()
        browser.press(Keys.ESCAPE)
    browser.wait(lambda: (downloads / 'loss.svg').exists() and (downloads / 'loss.csv').exists(), 'both files')
    picture = xml.etree.ElementTree.parse(downloads / 'loss.svg').getroot()
    texts = [one.text for one in picture.iter('{http://www.w3.org/2000/svg}text')]
    check(hostile in texts and 'loss' in texts, 'the picture has a legend and a title')
    equal([one.tag for one in picture.iter() if one.tag.endswith('img')], [])
    rows = list(csv.reader(open(downloads / 'loss.csv', encoding='utf-8')))
    equal(rows[0], ['run', 'metric', 'update', 'value', 'least', 'most'])
    equal({row[0] for row in rows[1:]}, {hostile, RUN})


def a_run_shows_config_checkpoints_log_and_alerts(browser, url, root):
    page = url + '/#/run/' + requote(RUN)
    browser.open(page + '?tab=config')
    browser.wait(lambda: 'trainer.init.optimizer.AdamW.lr' in browser.texts('.table .key'), 'the config')
    browser.open(page + '?tab=config&other=sweep%2Flr0.01-002')
    rows = 'return [...document.querySelectorAll(".diff tbody tr")].map((row) => [...row.cells].slice(0, 3).map((cell) => cell.textContent))'
    browser.wait(lambda: ['trainer.init.optimizer.AdamW.lr', '0.03', '0.01'] in browser.run(rows), 'what differs')
    browser.open(page + '?tab=checkpoints')
    browser.wait(lambda: 'checkpoint_400.pt' in browser.texts('.table td'), 'checkpoints')
    browser.wait(lambda: 'accuracy' in browser.texts('.table th'), 'values of validations')
    browser.open(page + '?tab=log')
    browser.wait(lambda: len(browser.all('.log .line')) > 50, 'the log')
    browser.one('#log-search').send_keys('DISK')
    browser.wait_equal(lambda: browser.texts('.log mark'), ['disk'], 'what was searched for')
    check(make_runs.HOSTILE in browser.text('.log'), 'markup in a log is shown as it is')
    browser.open(url + '/#/run/' + requote('sweep/lr0.003-007') + '?tab=alerts')
    browser.wait(lambda: 'loss is nan' in browser.texts('.table td'), 'an alert')
    check('the loss of update 225 is nan' in browser.text('.run-head'), 'why a run failed')
    browser.open(url + '/#/alerts')
    browser.wait(lambda: len(browser.all('.table tbody tr')) == 4, 'alerts of all runs')


def a_run_shows_images_histograms_texts_and_tables(browser, url, root):
    browser.open(url + '/#/run/' + requote(RUN) + '?tab=media')
    browser.resize(1360, 2400)
    browser.wait(lambda: browser.run('return [...document.images].filter((one) => one.naturalWidth === 28).length') == 4, 'images')
    first = browser.one('.card[data-name="image/0"] img').get_attribute('src')
    browser.one('.card[data-name="image/0"] input').send_keys(Keys.HOME)
    browser.wait(lambda: browser.one('.card[data-name="image/0"] img').get_attribute('src') != first, 'an earlier image')
    equal(browser.text('.card[data-name="image/0"] output'), 'update 20')
    browser.wait(lambda: browser.all('.card[data-name="confusion of classes"] .confusion'), 'a confusion matrix')
    browser.wait(lambda: browser.all('.card[data-name="roc"] .curve'), 'a curve')
    browser.wait(lambda: 'update 400: ' in browser.text('.card[data-name="sample"] pre'), 'a text')
    browser.wait(lambda: len(browser.all('.heat canvas')) == 2, 'histograms')
    browser.resize(1360, 820)


def the_traced_step_shows_times_memory_and_what_runs_eagerly(browser, url, root):
    browser.open(url + '/#/run/' + requote(RUN) + '?tab=step')
    browser.wait(lambda: len(browser.all('.operators .key')) > 5, 'operators by module')
    check('backward of net.2' in browser.texts('.operators .key'), 'modules are named')
    equal(browser.texts('.mode'), ['traced', 'eager', 'guarded, 1 read'])
    check('shape depends on its data' in browser.text('.why') + ' '.join(browser.texts('.why')), 'why a kind runs eagerly')
    equal(len(browser.all('.memory rect')), len(make_runs.place_blocks()[0]))
    equal(len(browser.all('.strip rect')), len(make_runs.INSTRUCTIONS))
    Select(browser.one('.step .field select')).select_by_value('operator')
    browser.wait(lambda: 'rondo::adamw_' in browser.texts('.operators .key'), 'operators')
    browser.one('.operators .key button').click()
    browser.wait(lambda: browser.one('.operators .member').is_displayed(), 'the instructions of a group')


def a_run_that_trains_is_seen_to_train(browser, url, root):
    browser.open(url + '/#/runs?filter=live')
    browser.wait_equal(lambda: browser.text('#tally'), '0 of 24 runs', 'the tally')
    record = Path(root) / 'sweep' / 'live' / 'record.jsonl'
    record.parent.mkdir()
    with open(record, 'w', encoding='utf-8') as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as who trains does

        def write(kind, step, **keys):
            file.write(json.dumps({'kind': kind, 'step': step, 'time': make_runs.BEGIN + step, **keys}) + '\n')
            file.flush()

        write('session', 0, format=1, run='live', version='0.2.0', updates=100)
        write('numbers', 10, values={'loss': 2.5})
        browser.wait_equal(lambda: browser.text('.run-row .status'), 'running', 'the status of a new run')
        browser.run('location.hash = "#/curves?selected=sweep%2Flive"')
        browser.wait_equal(lambda: browser.text('.chart[data-metric="loss"] .legend .num'), '2.5', 'the newest loss')
        write('numbers', 20, values={'loss': 1.25, 'lr': 0.1})
        browser.wait_equal(lambda: browser.text('.chart[data-metric="loss"] .legend .num'), '1.25', 'the next loss')
        browser.drawn('lr')
        write('end', 20, status='stopped', text='by SIGINT')
    browser.run('location.hash = "#/runs?filter=live"')
    browser.wait_equal(lambda: browser.text('.run-row .status'), 'stopped', 'the status at the end')


def dark_and_light_follow_the_system_and_the_switch(browser, url, root):
    ground = 'return getComputedStyle(document.body).backgroundColor'
    browser.open(url)
    light = browser.run(ground)
    browser.look('dark')
    browser.wait(lambda: browser.run(ground) != light, 'the dark look')
    dark = browser.run(ground)
    browser.press('t')
    browser.wait_equal(lambda: browser.run(ground), light, 'the light look by the switch')
    browser.open(url)
    equal(browser.run(ground), light)  # it is kept
    browser.one('#theme').click()
    browser.wait_equal(lambda: browser.run(ground), dark, 'the dark look by the switch')
    browser.run('localStorage.clear()')
    browser.look('light')


def hundreds_of_runs_are_drawn_as_they_come_into_sight(browser, url, root, many):
    begin = time.monotonic()
    browser.open(many)
    browser.wait_equal(lambda: browser.text('#tally'), '400 runs', 'the tally')
    print(f'    400 runs after {time.monotonic() - begin:.2f} s', flush=True)
    check(len(browser.all('.run-row')) < 60, 'only rows in sight exist')
    browser.press(Keys.END)
    browser.wait(lambda: browser.all('.run-row.active'), 'the last run')
    equal(browser.names()[-1], browser.text('.run-row.active .name a'))


def an_exported_page_needs_no_server(browser, url, root, exported):
    browser.open(exported.as_uri())
    browser.wait_equal(lambda: browser.text('#tally'), '24 runs', 'the tally')
    equal(browser.text('.live'), 'export')
    browser.open(exported.as_uri() + '#/curves?smooth=0.5')
    browser.drawn('loss')
    browser.open(exported.as_uri() + '#/run/' + requote(RUN) + '?tab=media')
    browser.wait(lambda: browser.run('return [...document.images].some((one) => one.naturalWidth === 28)'), 'images')
    browser.open(exported.as_uri() + '#/run/' + requote(RUN) + '?tab=step')
    browser.wait(lambda: browser.all('.memory rect'), 'the memory plan')
    browser.wait(lambda: browser.all('.strip rect'), 'times of operators')
    browser.open(exported.as_uri() + '#/run/' + requote(RUN) + '?tab=config&other=sweep%2Flr0.01-002')
    browser.wait(lambda: 'trainer.init.optimizer.AdamW.lr' in browser.texts('.diff .key'), 'what differs')


def sources_never_make_markup_from_text(browser, url, root):
    for file in (TREE / 'board' / 'web' / 'src').rglob('*.ts'):
        text = file.read_text(encoding='utf-8')
        check(re.search(r'innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function', text) is None, f'{file} makes no markup')


TESTS = [
    the_table_has_all_runs_and_names_are_only_text, a_regular_expression_filters_runs_and_stays_in_the_address,
    runs_are_grouped_by_a_config_key_and_sorted, a_pin_stays_on_top_and_a_baseline_gives_differences, all_of_the_table_works_by_keyboard,
    curves_lie_over_each_other_and_the_legend_has_values, dragging_zooms_all_curves_and_a_double_click_ends_it, charts_are_saved_as_svg_and_csv,
    a_run_shows_config_checkpoints_log_and_alerts, a_run_shows_images_histograms_texts_and_tables,
    the_traced_step_shows_times_memory_and_what_runs_eagerly, dark_and_light_follow_the_system_and_the_switch,
    hundreds_of_runs_are_drawn_as_they_come_into_sight, an_exported_page_needs_no_server, sources_never_make_markup_from_text,
    a_run_that_trains_is_seen_to_train,  # last: it adds a run
]


def take_screenshots(browser, url, folder):
    """Pictures for docs/board.md."""
    run = '#/run/' + requote(RUN)
    baseline = '&filter=sweep&baseline=' + requote(RUN)
    pages = [
        ('runs', 1280, 560, 'light', '#/runs?sort=metric%3Aval%2Floss&descending=0' + baseline, lambda: len(browser.names()) > 5),
        ('curves', 1120, 640, 'light', '#/curves?smooth=0.6' + baseline, lambda: len(browser.all('.chart:not(.loading) canvas')) >= 2),
        ('curves-dark', 1120, 640, 'dark', '#/curves?smooth=0.6' + baseline, lambda: len(browser.all('.chart:not(.loading) canvas')) >= 2),
        ('step', 1000, 1020, 'light', run + '?tab=step', lambda: browser.all('.memory rect') and browser.all('.strip rect')),
        ('media', 1040, 1000, 'light', run + '?tab=media', lambda: len(browser.all('.heat canvas')) == 2 and
         browser.run('return [...document.images].every((one) => one.naturalWidth > 0)')),
    ]
    for name, width, height, scheme, address, is_ready in pages:
        browser.resize(width, height)
        browser.look(scheme)
        browser.open(url + '/' + address)
        browser.wait(is_ready, name)
        browser.run('document.activeElement.blur()')
        file = folder / f'{name}.png'
        browser.driver.save_screenshot(str(file))
        check(file.stat().st_size < 150 * 1024, f'{file} is small enough for docs/')
        print(f'{file}: {file.stat().st_size} bytes')
    browser.look('light')
    browser.resize(1360, 820)


def run_test(test, browser, url, root, extras):
    arguments = test.__code__.co_varnames[3:test.__code__.co_argcount]
    try:
        test(browser, url, root, *[extras[name] for name in arguments])
        errors = browser.errors()
        assert not errors, f'the browser complains: {errors}'
        print(f'ok      {test.__name__}', flush=True)
        return True
    except Exception:  # noqa: BLE001
        print(f'FAILED  {test.__name__}\n{traceback.format_exc()}', flush=True)
        browser.errors()
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('rondo')
    parser.add_argument('--screenshots', type=Path)
    parser.add_argument('--only', default='')
    options = parser.parse_args()
    os.environ['TZ'] = 'UTC'
    with tempfile.TemporaryDirectory(prefix='rondo-board-') as work:
        root, many, downloads = (Path(work) / name for name in ('runs', 'many', 'downloads'))
        downloads.mkdir()
        make_runs.make_runs(root)
        make_runs.make_runs(many, 400)
        exported = Path(work) / 'exported.html'
        subprocess.run([options.rondo, 'board', str(root), '--export', str(exported)], check=True, stdout=subprocess.DEVNULL)
        browser = Browser(downloads)
        boards = [Board(options.rondo, root), Board(options.rondo, many)]
        extras = {'downloads': downloads, 'many': boards[1].url, 'exported': exported}
        try:
            if options.screenshots is not None:  # before a test adds a run
                options.screenshots.mkdir(parents=True, exist_ok=True)
                take_screenshots(browser, boards[0].url, options.screenshots)
            results = [run_test(test, browser, boards[0].url, root, extras) for test in TESTS if options.only in test.__name__]
        finally:
            browser.driver.quit()
            for board in boards:
                board.close()
    print(f'{results.count(True)} passed, {results.count(False)} failed')
    return 0 if all(results) else 1


if __name__ == '__main__':
    sys.exit(main())
