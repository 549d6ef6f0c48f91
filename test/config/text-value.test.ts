import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { TextValueError, valueFromText } from '../../src/config/text-value.js';

describe('valueFromText', () => {
  it.each([
    ['a number', z.number().default(3), '12', 12],
    ['an exponent', z.number(), '1e3', 1_000],
    ['no number', z.number(), '12px', '12px'],
    ['a boolean word', z.boolean().default(true), 'Off', false],
    ['no boolean', z.boolean(), 'maybe', 'maybe'],
    ['text', z.string().min(1), '12', '12'],
    ['null', z.number().nullable(), 'null', null],
    ['a literal beside a number', z.union([z.literal('shared'), z.number()]), 'shared', 'shared'],
    ['a number beside a literal', z.union([z.literal('shared'), z.number()]), '0', 0],
    ['a literal number', z.literal([1, 2]), '2', 2],
    ['a list of texts', z.array(z.string()).default([]), 'a, b,,c', ['a', 'b', 'c']],
    ['a list of numbers', z.array(z.number()), '1,2', [1, 2]],
    ['an empty list', z.array(z.string()), '[]', []],
    ['a text or a list', z.union([z.array(z.string()), z.string()]), 'a,b', ['a', 'b']],
    ['a list of objects', z.array(z.strictObject({ a: z.number() })), '[{"a":1}]', [{ a: 1 }]],
    ['a map', z.record(z.string(), z.string()), '{"a":"b"}', { a: 'b' }],
    ['a map or a text', z.union([z.record(z.string(), z.string()), z.string()]), 'plain', 'plain'],
  ])('reads %s', (_, schema, text, value) => {
    expect(valueFromText(schema, text)).toEqual(value);
  });

  it('refuses deeper values that are no JSON, without repeating them', () => {
    expect(() => valueFromText(z.record(z.string(), z.string()), 'hunter2')).toThrow(
      new TextValueError('is not valid JSON'),
    );
  });
});
