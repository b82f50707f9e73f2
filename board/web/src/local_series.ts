// What the server does to a series, for an exported page: smoothing, the part that is shown, and
// buckets with their least and most value.

import type {Num, Series, SeriesQuery} from './api';

/** An exponential mean of the points so far, in which the start has its full weight. */
function smoothed(values: Num[], weight: number): Num[] {
  let mean = 0;
  let sum = 0;
  return values.map((value) => {
    if (typeof value !== 'number') {
      return value;
    }
    mean = weight * mean + (1 - weight) * value;
    sum = weight * sum + (1 - weight);
    return mean / sum;
  });
}

export function localSeries(series: Series, q: SeriesQuery): Series {
  const ys = smoothed(series.y, q.smooth);
  const [from, to] = [q.from ?? -Infinity, q.to ?? Infinity];
  const kept = series.x.map((_, i) => i).filter((i) => series.x[i] >= from && series.x[i] <= to);
  const width = Math.max(1, Math.ceil(kept.length / q.points));
  const result: Series = {...series, x: [], y: [], low: [], high: []};
  for (let begin = 0; begin < kept.length; begin += width) {
    const bucket = kept.slice(begin, begin + width);
    const last = bucket[bucket.length - 1];
    const finiteOf = (values: Num[]) => bucket.map((i) => values[i]).filter((v): v is number => typeof v === 'number');
    const lows = finiteOf(series.low);
    const highs = finiteOf(series.high);
    result.x.push(series.x[last]);
    result.y.push(ys[last]);
    result.low.push(lows.length > 0 ? Math.min(...lows) : 'nan');
    result.high.push(highs.length > 0 ? Math.max(...highs) : 'nan');
  }
  return result;
}
