import { ConfigError } from "../../errors.ts";
import type { WorkRecord } from "../manifest/manifest-reports.ts";
import { type Cell, COLUMNS, type ExportColumn } from "./columns.ts";

/** The part of `hyparquet-writer`, an optional peer dependency, that is used here. */
interface ParquetModule {
  readonly ByteWriter: new () => ByteWriter;
  readonly ParquetWriter: new (options: { readonly writer: ByteWriter; readonly schema: unknown }) => ParquetWriter;
  schemaFromColumnData(options: { readonly columnData: readonly ColumnData[] }): unknown;
}

interface ByteWriter {
  /** Position in the buffer; 0 begins the buffer again. */
  index: number;
  getBytes(): Uint8Array;
}

interface ParquetWriter {
  write(options: { readonly columnData: readonly ColumnData[]; readonly rowGroupSize: number }): void | Promise<void>;
  finish(): void | Promise<void>;
}

interface ColumnData {
  readonly name: string;
  readonly data: readonly unknown[];
  readonly type: "STRING" | "INT64" | "BOOLEAN" | "JSON";
  readonly nullable: true;
}

/** Works in memory at a time, some 10 MB. */
const WORKS_PER_GROUP = 5000;
const TYPES = { text: "STRING", integer: "INT64", boolean: "BOOLEAN" } as const;

/**
 * Works as an Apache Parquet file, in parts: the columns of the CSV, and `files` with every file as JSON. Memory does not
 * grow with their number. Throws a ConfigError if the package `hyparquet-writer` is not installed.
 */
export async function* parquetFile(
  records: AsyncIterable<WorkRecord> | Iterable<WorkRecord>,
): AsyncIterable<Uint8Array> {
  const { ByteWriter, ParquetWriter, schemaFromColumnData } = await loadWriter();
  const bytes = new ByteWriter();
  const writer = new ParquetWriter({ writer: bytes, schema: schemaFromColumnData({ columnData: columnsOf([]) }) });
  const flushed = () => {
    const part = bytes.getBytes().slice();
    bytes.index = 0;
    return part;
  };
  let group: WorkRecord[] = [];
  const write = async () => {
    await writer.write({ columnData: columnsOf(group), rowGroupSize: WORKS_PER_GROUP });
    group = [];
    return flushed();
  };
  for await (const record of records) {
    group.push(record);
    if (group.length >= WORKS_PER_GROUP) yield await write();
  }
  if (group.length > 0) yield await write();
  await writer.finish();
  yield flushed();
}

function columnsOf(records: readonly WorkRecord[]): readonly ColumnData[] {
  const columns = COLUMNS.map(
    ({ name, type, cellOf }): ColumnData => ({
      ...{ name, type: TYPES[type], nullable: true },
      data: records.map(record => parquetValue(cellOf(record), type)),
    }),
  );
  return [...columns, { name: "files", type: "JSON", nullable: true, data: records.map(({ files }) => files) }];
}

function parquetValue(value: Cell, type: ExportColumn["type"]): string | bigint | boolean | null {
  if (value === undefined) return null;
  return type === "integer" ? BigInt(value) : (value as string | boolean);
}

async function loadWriter(): Promise<ParquetModule> {
  // Not a literal, because the compiler would look for the types of the package.
  const name: string = "hyparquet-writer";
  try {
    return (await import(name)) as ParquetModule;
  } catch (cause) {
    const message = "parquet needs the package hyparquet-writer: npm install hyparquet-writer";
    throw new ConfigError([{ where: "--format", path: "", message }], { cause });
  }
}
